// Package profiling serves profiles of this process, for engineers who want to know what uses time and memory.
package profiling

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"time"
)

// Server serves profiles until it is closed.
type Server struct {
	listener net.Listener
	http     http.Server
}

// errAddress is the error for an address that is not on loopback, because other hosts could read a profile from such an address.
var errAddress = errors.New("write a port on loopback, such as 127.0.0.1:6060: only this host can read profiles, and from another host " +
	"you can fetch them through ssh -L 6060:127.0.0.1:6060")

// Listen serves profiles on a loopback address. It refuses any other address.
func Listen(address string) (*Server, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil || !loopback(host) {
		return nil, fmt.Errorf("%q: %w", address, errAddress)
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	if at, ok := l.Addr().(*net.TCPAddr); !ok || !at.IP.IsLoopback() { // the host decides which address "localhost" has
		return nil, errors.Join(fmt.Errorf("%q is %s: %w", address, l.Addr(), errAddress), l.Close())
	}
	s := &Server{listener: l}
	s.http.Handler, s.http.ReadHeaderTimeout = local(profiles()), 10*time.Second
	go func() { _ = s.http.Serve(l) }() // Serve returns when the server is closed
	return s, nil
}

// Address returns the address on which the server listens for requests for profiles.
func (s *Server) Address() string { return s.listener.Addr().String() }

// Close stops serving, and ends requests that are still running.
func (s *Server) Close() error { return s.http.Close() }

// profiles serves Go's profiles, except for the command line of this process.
func profiles() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	return mux
}

// local refuses requests that web pages in a browser on this host make with another host name.
func local(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = r.Host
		}
		site := r.Header.Get("Sec-Fetch-Site")
		if !loopback(host) || site != "" && site != "none" && site != "same-origin" {
			http.Error(w, "profiles are for this host alone", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
