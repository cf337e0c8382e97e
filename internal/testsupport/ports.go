package testsupport

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"syscall"
	"testing"
)

// Ports come from below Linux' ephemeral range (32768 and up). In that range a
// client that keeps dialling a server that is down can be given the very port as
// its own: it then holds a connection with itself, and the server cannot restart.
const lowPort, highPort = 15000, 32000

// freePort finds a port on loopback that nobody listens on. Somebody else may
// take it before the caller does: callers try again with another one.
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

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
