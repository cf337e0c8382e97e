package cluster

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"baton/internal/testsupport"
)

// program is built once a test process. It is a variable of the package because a
// test binary has one process and many entry points.
var program struct {
	once sync.Once
	path string
	err  error
}

// Build returns the path of the program, built from this source tree the first
// time that a test asks for it: without the race detector, whose memory and time
// are not the program's.
func Build(t testing.TB) string {
	t.Helper()
	program.once.Do(func() { program.path, program.err = build() })
	if program.err != nil {
		t.Fatalf("build baton for this test: %v", program.err)
	}
	return program.path
}

func build() (string, error) {
	dir, err := testsupport.SharedDir("bin")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "baton")
	out, err := exec.Command("go", "build", "-buildvcs=false", "-ldflags", "-X main.version=test", "-o", path, "baton/cmd/baton").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return path, nil
}
