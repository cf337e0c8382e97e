// Package goclock builds Go programs whose wall clock a test steps while they run.
package goclock

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
	"time"
)

// Env names the file that says by how many seconds the wall clock is off of a
// program that was built with [Overlay]: one number of eight bytes, in the
// machine's own order. Without it in its environment a program keeps its time.
const Env = "STEPPED_CLOCK_FILE"

// goClock looks into that file whenever anybody asks for the time: the wall clock steps
// while the program runs, and the monotonic clock goes on as if nothing had happened. The
// file is mapped into memory, because the runtime asks for the time where no system call
// is allowed.
const goClock = `package time

import (
	"syscall"
	"unsafe"
)

var skewed = mapSkew()

func mapSkew() []byte {
	path, found := syscall.Getenv("` + Env + `")
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

// Step makes the wall clocks of the programs that look into that file true time
// plus d, in whole seconds. The file is made if it is not there.
func Step(path string, d time.Duration) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(binary.NativeEndian.AppendUint64(nil, uint64(d/time.Second)), 0)
	return errors.Join(err, f.Close())
}

// Overlay writes into dir what "go build -overlay PATH" wants, to build a program
// whose standard library is the real one but for the function that tells the wall clock.
// libfaketime does not reach Go programs: they ask the kernel themselves.
func Overlay(dir string) (path string, err error) {
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
	for name, text := range map[string]string{"time.go": skewed, "skew.go": goClock} {
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
