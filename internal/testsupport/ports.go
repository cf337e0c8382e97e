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

// lowPort and highPort limit the ports of test servers, below Linux' ephemeral range (32768 and up). In that range a client that keeps
// dialling a stopped server can get the server's port as its own port. The client is then connected to itself, and the server cannot
// restart.
const lowPort, highPort = 15000, 32000

// freePort finds a port on loopback without a listener. No other test gets the port while this process runs. Another program may still take
// the port before the caller uses it; the caller then tries another port.
func freePort() (int, error) {
	port, ln, err := listenFree()
	if err != nil {
		return 0, err
	}
	return port, ln.Close()
}

// FreeAddr returns a host:port on loopback without a listener, for a program that uses the same address again after a restart.
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

// reserve reserves a port for this process, so that no other test uses it, in this or another process. The server of that port may be down
// for a while and needs the port again. reserve returns false if another test has the port. The reservation is an abstract Unix socket,
// which ends with the process.
func reserve(port int) bool {
	ln, err := net.Listen("unix", fmt.Sprintf("@baton-test-port-%d", port))
	if err != nil {
		return false
	}
	reserved.Store(port, ln)
	return true
}

// reserved contains the listeners that reserve has opened, because a listener without a reference would be closed.
var reserved sync.Map

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
