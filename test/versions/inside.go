package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// inside is the first argument of this program when it runs in its own mount namespace.
const inside = "inside"

// test runs one suite in a release, and writes the events of go test to a file.
func (s stand) test(ctx context.Context, of suite, env []string, root, log string) (*result, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	arguments := append([]string{"go", "test", "-json", "-count=1", "-p=1", "-timeout=40m"}, of.arguments...)
	cmd := exec.CommandContext(ctx, arguments[0], arguments[1:]...)
	// The process is in a new process group, so that no test continues when this program is interrupted. Servers end with their tests.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if root != "/" {
		cmd = exec.CommandContext(ctx, self, append([]string{inside, root}, arguments...)...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Cloneflags: syscall.CLONE_NEWNS}
	}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.Env = append(append(os.Environ(), env...), append(s.env, "CGO_ENABLED=0")...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	file, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	r := &result{}
	if err := r.read(io.TeeReader(out, file)); err != nil {
		return nil, err
	}
	// If a test fails, go test also returns an error because of its exit code.
	if err := cmd.Wait(); err != nil && (len(r.red) == 0 || !errors.As(err, new(*exec.ExitError))) {
		return nil, fmt.Errorf("go test: %w: look into %s", err, log)
	}
	return r, ctx.Err()
}

// enter makes root the root directory, with the toolchain, the caches and this clone at the same paths as outside. Then it replaces this
// process by the program argv.
func enter(root string, argv []string) error {
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make the mounts this process' own: %w", err)
	}
	here, err := os.Getwd()
	if err != nil {
		return err
	}
	paths, err := goEnv("GOROOT", "GOMODCACHE", "GOCACHE")
	if err != nil {
		return err
	}
	program := filepath.Join(paths[0], "bin", argv[0])
	for _, path := range append(paths, here, "/dev", "/sys", "/tmp", os.TempDir()) {
		at := filepath.Join(root, path)
		if err := os.MkdirAll(at, 0o755); err != nil {
			return err
		}
		if err := syscall.Mount(path, at, "", syscall.MS_BIND|syscall.MS_REC, ""); err != nil {
			return fmt.Errorf("mount %s: %w", path, err)
		}
	}
	if err := syscall.Mount("proc", filepath.Join(root, "proc"), "proc", 0, ""); err != nil {
		return fmt.Errorf("mount proc: %w", err)
	}
	if err := syscall.Chroot(root); err != nil {
		return err
	}
	if err := os.Chdir(here); err != nil {
		return err
	}
	env := append(os.Environ(), "PATH="+filepath.Join(paths[0], "bin")+":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"GOMODCACHE="+paths[1], "GOCACHE="+paths[2], "GOTOOLCHAIN=local", "GOPROXY=off")
	return syscall.Exec(program, argv, env)
}

func goEnv(names ...string) ([]string, error) {
	out, err := exec.Command("go", append([]string{"env"}, names...)...).Output()
	return strings.Split(strings.TrimSpace(string(out)), "\n"), err
}

// event is one line of go test -json; see go doc test2json.
type event struct{ Action, Package, Test string }

// result contains the results of the tests of a suite.
type result struct {
	passed, skipped int
	red             []string
	running         []string // tests that have begun and not ended
}

func (r *result) read(from io.Reader) error {
	lines := bufio.NewReader(from)
	for {
		text, err := lines.ReadBytes('\n')
		var e event
		if json.Unmarshal(text, &e) == nil {
			r.count(e)
		}
		if errors.Is(err, io.EOF) {
			r.red, r.running = append(r.red, r.running...), nil // a panic, or a time limit, has ended all tests of a package
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// count counts tests, but not subtests. If a package fails without a failed test, it does not compile, or it panicked.
func (r *result) count(e event) {
	name := e.Package + " " + e.Test
	switch {
	case strings.Contains(e.Test, "/"):
	case e.Action == "run":
		r.running = append(r.running, name)
		return
	case e.Action == "fail" && (e.Test != "" || !r.has(e.Package)):
		r.red = append(r.red, strings.TrimSpace(name))
	case e.Test == "":
	case e.Action == "pass":
		r.passed++
	case e.Action == "skip":
		r.skipped++
	}
	if e.Action == "pass" || e.Action == "fail" || e.Action == "skip" {
		r.running = slices.DeleteFunc(r.running, func(n string) bool { return n == name })
	}
}

func (r *result) has(pkg string) bool {
	for _, name := range r.red {
		if strings.HasPrefix(name, pkg+" ") {
			return true
		}
	}
	return false
}

func (r *result) String() string {
	switch {
	case r == nil:
		return "-"
	case len(r.red) > 0:
		return fmt.Sprintf("%d of %d red", len(r.red), len(r.red)+r.passed)
	}
	return fmt.Sprintf("%d green", r.passed)
}
