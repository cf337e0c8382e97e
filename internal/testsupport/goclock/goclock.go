// Package goclock builds Go programs whose wall clock a test can step while the programs run.
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

// Env is the environment variable with the path of the clock file, for programs that were built with [Overlay]. The file contains the
// offset of the wall clock in seconds, as one native integer of eight bytes. Without the variable a program uses the true time.
const Env = "STEPPED_CLOCK_FILE"

// goClock reads the clock file whenever the program asks for the time. So the wall clock steps while the program runs, but the monotonic
// clock does not step. The file is mapped into memory, because the runtime reads the time where no system call is allowed.
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

// Step sets the wall clocks of the programs that read the file at path to the true time plus d, in whole seconds. It creates the file if
// the file does not exist.
func Step(path string, d time.Duration) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(binary.NativeEndian.AppendUint64(nil, uint64(d/time.Second)), 0)
	return errors.Join(err, f.Close())
}

// Overlay writes into dir the files that "go build -overlay PATH" needs to build a program that reads its wall clock from the clock file.
// The rest of the standard library does not change. libfaketime does not work with Go programs, because these programs read the time
// without the C library.
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
		return "", fmt.Errorf("the code of time.Now in this Go version does not begin with %q: check how it reads the clock", read)
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
