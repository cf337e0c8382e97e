package testsupport

import (
	"fmt"
	"hash/crc32"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"baton/internal/testsupport/goclock"
	"baton/internal/testsupport/ground"
)

// Program returns a function that builds a program of this module and returns its path. The program is built only once per process, or once
// per run of the whole suite. The program is built as it is shipped: without C, and without the race detector, which would change the
// program's memory and times. The argument args contains further arguments of "go build".
func Program(pkg string, args ...string) func(testing.TB) string {
	variant := fmt.Sprintf("-%08x", crc32.ChecksumIEEE([]byte(strings.Join(args, "\x00"))))
	return built(pkg, variant, func(string) ([]string, error) { return args, nil })
}

// SteppedProgram is like Program, but [goclock.Step] can step the wall clock of the program.
func SteppedProgram(pkg string) func(testing.TB) string {
	return built(pkg, "-stepped", func(dir string) ([]string, error) {
		overlay, err := goclock.Overlay(dir)
		return []string{"-overlay", overlay}, err
	})
}

func built(pkg, variant string, args func(dir string) ([]string, error)) func(testing.TB) string {
	once := sync.OnceValues(func() (string, error) {
		name := path.Base(pkg)
		build := func(dir string) error {
			more, err := args(dir)
			if err != nil {
				return err
			}
			cmd := exec.Command("go", append(append([]string{"build", "-buildvcs=false"}, more...), "-o", filepath.Join(dir, name), pkg)...)
			cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
			if out, err := cmd.CombinedOutput(); err != nil {
				return fmt.Errorf("%w\n%s", err, out)
			}
			return nil
		}
		dir, shared, err := ground.Once(strings.ReplaceAll(pkg, "/", "-")+variant, build)
		if !shared {
			if dir, err = SharedDir("bin"); err == nil {
				err = build(dir)
			}
		}
		return filepath.Join(dir, name), err
	})
	return func(t testing.TB) string {
		t.Helper()
		program, err := once()
		if err != nil {
			t.Fatalf("build %s for this test: %v", pkg, err)
		}
		return program
	}
}
