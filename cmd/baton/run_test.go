package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"baton/cmd/baton/internal/cmdline"
	"baton/internal/config"
)

// asBaton is the variable that makes the test binary run as baton, with the arguments in its value.
const asBaton = "BATON_TEST_ARGUMENTS"

func TestTheDaemonOutlivesWhoReadsItsLog(t *testing.T) {
	if args := os.Getenv(asBaton); args != "" {
		os.Args = append([]string{"baton"}, strings.Fields(args)...)
		main()
	}
	log, written, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	// There is no Redis, because the daemon only needs to log, and to end in an orderly way.
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), "RUNTIME_DIRECTORY="+dir, "STATE_DIRECTORY="+dir, asBaton+"=run --redis redis://127.0.0.1:1/0 --http off")
	cmd.Stdout, cmd.Stderr = written, written
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = written.Close()
	began := false
	for lines := bufio.NewScanner(log); !began && lines.Scan(); {
		began = strings.Contains(lines.Text(), "started")
	}
	_ = log.Close()
	if !began {
		t.Error("the daemon did not start")
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	ended := time.AfterFunc(20*time.Second, func() { _ = cmd.Process.Kill() })
	defer ended.Stop()
	if err := cmd.Wait(); err != nil {
		t.Errorf("it logs that it stops, and nobody reads: %v", err)
	}
}

func TestLinesForTheJournalBeginWithTheirPriority(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	stat := info.Sys().(*syscall.Stat_t)
	log := func(stream string) {
		l := newLogger(cmdline.Env{Stderr: f, Getenv: func(string) (string, bool) { return stream, true }}, config.Log{Format: "json"}, zapcore.InfoLevel).With(zap.String("node_id", "a"))
		l.Debug("no")
		l.Info("one")
		l.Warn("two")
		l.Error("three")
	}
	log(fmt.Sprintf("%d:%d", stat.Dev, stat.Ino))
	log("1:2")
	content, err := os.ReadFile(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(content)), "\n")
	for i, want := range []string{`<6>{`, `<4>{`, `<3>{`, `{`, `{`, `{`} {
		if len(lines) != 6 || !strings.HasPrefix(lines[i], want) || !strings.Contains(lines[i], `"node_id":"a"`) {
			t.Errorf("line %d does not begin with %s:\n%s", i, want, content)
		}
	}
}
