// Package profiling serves the profiles of this process, for engineers who look
// for the code that spends its time and memory.
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

// errAddress says how an address must look. Beyond loopback other hosts could read a profile.
var errAddress = errors.New("name a port on loopback, such as 127.0.0.1:6060: profiles are for this host alone, and from another one " +
	"they are fetched by way of ssh -L 6060:127.0.0.1:6060")

// Listen serves profiles on an address on loopback, and refuses any other.
func Listen(address string) (*Server, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil || !loopback(host) {
		return nil, fmt.Errorf("%q: %w", address, errAddress)
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	if at, ok := l.Addr().(*net.TCPAddr); !ok || !at.IP.IsLoopback() { // what "localhost" is the host decides
		return nil, errors.Join(fmt.Errorf("%q is %s: %w", address, l.Addr(), errAddress), l.Close())
	}
	s := &Server{listener: l}
	s.http.Handler, s.http.ReadHeaderTimeout = local(profiles()), 10*time.Second
	go func() { _ = s.http.Serve(l) }() // it ends when it is closed
	return s, nil
}

// Address is where profiles are served.
func (s *Server) Address() string { return s.listener.Addr().String() }

// Close ends all that is under way, too.
func (s *Server) Close() error { return s.http.Close() }

// profiles are those of Go, without the command line.
func profiles() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	return mux
}

// local refuses the requests of web pages in a browser on this host, by any name.
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
