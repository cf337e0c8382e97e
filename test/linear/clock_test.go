package linear

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"baton/internal/testsupport"
)

// program is the node, built once a test process. It is a variable of the package
// because a test binary has one process and many entry points.
var program struct {
	once sync.Once
	path string
	err  error
}

// buildNode returns the path of the node's program, whose wall clock can be stepped.
func buildNode(t testing.TB) string {
	t.Helper()
	program.once.Do(func() { program.path, program.err = build() })
	if program.err != nil {
		t.Fatalf("build the node: %v", program.err)
	}
	return program.path
}

func build() (string, error) {
	dir, err := testsupport.SharedDir("linear")
	if err != nil {
		return "", err
	}
	overlay, err := testsupport.GoClockOverlay(dir)
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "node")
	cmd := exec.Command("go", "build", "-buildvcs=false", "-overlay", overlay, "-o", path, "baton/test/linear/node")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return path, nil
}
