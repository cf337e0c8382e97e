package testsupport

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"syscall"
	"testing"
)

// Ports come from below Linux' ephemeral range (32768 and up). In that range a
// client that keeps dialling a server that is down can be given the very port as
// its own: it then holds a connection with itself, and the server cannot restart.
const lowPort, highPort = 15000, 32000

// freePort finds a port on loopback that nobody listens on. It is this process' own until
// that ends, as far as tests go; another program may still take it before the caller does:
// callers try again with another one.
func freePort() (int, error) {
	port, ln, err := listenFree()
	if err != nil {
		return 0, err
	}
	return port, ln.Close()
}

// FreeAddr is a host:port on loopback that nobody listens on, for a program that is to be
// found there again after a restart.
func FreeAddr(t testing.TB) string {
	t.Helper()
	port, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	return loopback(port)
}

func listenFree() (int, net.Listener, error) {
	for range 100 {
		port := lowPort + rand.IntN(highPort-lowPort)
		if !reserve(port) {
			continue
		}
		ln, err := net.Listen("tcp4", loopback(port))
		if err == nil {
			return port, ln, nil
		}
		if !errors.Is(err, syscall.EADDRINUSE) {
			return 0, nil, err
		}
	}
	return 0, nil, fmt.Errorf("no free port on loopback between %d and %d", lowPort, highPort)
}

// reserve keeps other tests, also those of other processes, from a port: its server may be
// down for a while, and is to be found there again. It reports false if somebody has it.
// A name in the kernel does it, which is gone with the process.
func reserve(port int) bool {
	ln, err := net.Listen("unix", fmt.Sprintf("@baton-test-port-%d", port))
	if err != nil {
		return false
	}
	reserved.Store(port, ln)
	return true
}

// reserved are the names of this process' ports: a listener that nobody refers to is closed.
var reserved sync.Map

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
