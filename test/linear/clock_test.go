package linear

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"baton/internal/testsupport"
)

// skewEnv names the file that says by how many seconds a node's wall clock is off: one
// number of eight bytes, in the machine's own order.
const skewEnv = "LINEAR_CLOCK_SKEW"

// skewGo looks into that file whenever anybody asks for the time: the wall clock steps
// while the program runs, and the monotonic clock goes on as if nothing had happened. The
// file is mapped into memory, because the runtime asks for the time where no system call
// is allowed. A program without the variable in its environment keeps its time.
const skewGo = `package time

import (
	"syscall"
	"unsafe"
)

var skewed = mapSkew()

func mapSkew() []byte {
	path, found := syscall.Getenv("` + skewEnv + `")
	if !found {
		return nil
	}
	fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		panic("open " + path + ": " + err.Error())
	}
	defer syscall.Close(fd)
	b, err := syscall.Mmap(fd, 0, 8, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		panic("map " + path + ": " + err.Error())
	}
	return b
}

func skewSeconds() int64 {
	if skewed == nil {
		return 0
	}
	return *(*int64)(unsafe.Pointer(&skewed[0]))
}
`

// writeSkew makes the wall clocks of programs that look into that file step.
func writeSkew(path string, seconds int64) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(binary.NativeEndian.AppendUint64(nil, uint64(seconds)), 0)
	return errors.Join(err, f.Close())
}

// program is the node, built once a test process. It is a variable of the package
// because a test binary has one process and many entry points.
var program struct {
	once sync.Once
	path string
	err  error
}

// buildNode returns the path of the node's program. Its standard library is the real one
// but for the function that tells the wall clock.
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
	overlay, err := writeOverlay(dir)
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

// writeOverlay writes what replaces files of the standard library for one build.
func writeOverlay(dir string) (path string, err error) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("find Go's own sources: %w", err)
	}
	std := filepath.Join(strings.TrimSpace(string(root)), "src", "time")
	source, err := os.ReadFile(filepath.Join(std, "time.go"))
	if err != nil {
		return "", err
	}
	const read = "\tsec, nsec, mono := runtimeNow()\n"
	head, now, found := bytes.Cut(source, []byte("\nfunc Now() Time {\n"+read))
	if !found {
		return "", fmt.Errorf("time.Now of this Go does not begin with %q: see how it reads the clock", read)
	}
	skewed := fmt.Sprintf("%s\nfunc Now() Time {\n%s\tsec += skewSeconds()\n%s", head, read, now)
	replaced := map[string]string{}
	for name, text := range map[string]string{"time.go": skewed, "skew.go": skewGo} {
		own := filepath.Join(dir, name)
		if err := os.WriteFile(own, []byte(text), 0o600); err != nil {
			return "", err
		}
		replaced[filepath.Join(std, name)] = own
	}
	b, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		return "", err
	}
	path = filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, b, 0o600)
}
