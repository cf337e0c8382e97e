package status

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"baton/internal/status/web"
)

// shutdownWithin is the time that requests in progress have to finish when the server ends.
const shutdownWithin = 3 * time.Second

// Serve serves requests on the listeners until ctx ends. It then lets requests in progress finish, closes the listeners, and returns nil.
// If a listener fails, Serve also closes the other listeners, and returns the error. TCP listeners use TLS if Config.TLS is set. Serve must
// be called only once.
func (s *Server) Serve(ctx context.Context, lns ...net.Listener) error {
	server := &http.Server{
		Handler:           web.InTurn(s),
		ConnContext:       web.WithConnection,
		ReadHeaderTimeout: s.limits.Header,
		ReadTimeout:       s.limits.Read,
		WriteTimeout:      s.limits.Write,
		IdleTimeout:       s.limits.Idle,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          web.NewServerLog(s.cfg.Logger),
		TLSConfig:         s.cfg.TLS,
		// A connection of HTTP/2 could carry more requests at the same time than the limit allows.
		Protocols: new(http.Protocols),
	}
	server.Protocols.SetHTTP1(true)
	failed := make(chan error, len(lns))
	for _, ln := range lns {
		go func() { failed <- serveOn(server, web.LimitListener(ln, s.limits, s.cfg.Logger)) }()
	}

	var err error
	left := len(lns)
	select {
	case err = <-failed:
		left--
	case <-ctx.Done():
	}
	// ctx has ended, but Shutdown still needs a context.
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownWithin)
	defer cancel()
	s.watch.End() // requests that wait for the Source get the last known state
	if shut := server.Shutdown(stop); shut != nil {
		// Close the connections of clients that are still reading.
		_ = server.Close()
	}
	for range left {
		if served := <-failed; !errors.Is(served, http.ErrServerClosed) {
			err = errors.Join(err, served)
		}
	}
	// The attempt to gather the state was cancelled by s.watch.End. The wait for that attempt gets its own time limit, so that slow readers
	// cannot use up the time.
	last, cancelLast := context.WithTimeout(context.WithoutCancel(ctx), shutdownWithin)
	defer cancelLast()
	return errors.Join(err, s.watch.Wait(last))
}

// serveOn serves one listener until the server ends or the listener fails. Each listener has its own limit of connections, so that too many
// connections on one listener do not block another.
func serveOn(server *http.Server, ln net.Listener) error {
	var err error
	if _, tcp := ln.Addr().(*net.TCPAddr); tcp && server.TLSConfig != nil {
		err = server.ServeTLS(ln, "", "")
	} else {
		err = server.Serve(ln)
	}
	return fmt.Errorf("serve the status page on %s: %w", ln.Addr(), err)
}
