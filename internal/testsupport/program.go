package testsupport

import (
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"sync"
	"testing"
)

// Program returns a function that builds a program of this module the first time that a
// test of this process asks for it, and returns its path. It is built as it is shipped,
// without C, and without the race detector, whose memory and time are not the program's.
// args are the go command's.
func Program(pkg string, args ...string) func(testing.TB) string {
	return built(pkg, func(string) ([]string, error) { return args, nil })
}

// SteppedProgram is a Program whose wall clock [StepGoClock] steps.
func SteppedProgram(pkg string) func(testing.TB) string {
	return built(pkg, func(dir string) ([]string, error) {
		overlay, err := GoClockOverlay(dir)
		return []string{"-overlay", overlay}, err
	})
}

func built(pkg string, args func(dir string) ([]string, error)) func(testing.TB) string {
	once := sync.OnceValues(func() (string, error) {
		dir, err := SharedDir("bin")
		if err != nil {
			return "", err
		}
		more, err := args(dir)
		if err != nil {
			return "", err
		}
		program := filepath.Join(dir, path.Base(pkg))
		cmd := exec.Command("go", append(append([]string{"build", "-buildvcs=false"}, more...), "-o", program, pkg)...)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("%w\n%s", err, out)
		}
		return program, nil
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
