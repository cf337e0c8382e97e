package status

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"go.uber.org/zap"
)

const (
	// maxConnections bounds the file descriptors that readers can take from a
	// process that needs them for Redis and databases.
	maxConnections = 128
	// shutdownWithin is what requests under way get when the server ends.
	shutdownWithin = 3 * time.Second
)

// Serve answers on ln until ctx ends, lets requests under way finish, and returns
// nil; or it returns why the listener failed. It closes ln. Call it once.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	server := &http.Server{
		Handler:           s,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      15 * time.Second,
		IdleTimeout:       30 * time.Second,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          zap.NewStdLog(s.cfg.Logger),
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(limitListener(ln, maxConnections)) }()

	var err error
	select {
	case err = <-failed:
		err = fmt.Errorf("serve the status page on %s: %w", ln.Addr(), err)
	case <-ctx.Done():
	}
	// ctx has ended, and what is left to do must still be done.
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownWithin)
	defer cancel()
	s.watch.end() // whoever waits for it is answered with what is known
	if shut := server.Shutdown(stop); shut != nil {
		// Whoever still reads after that is cut off.
		_ = server.Close()
	}
	if err == nil {
		if served := <-failed; !errors.Is(served, http.ErrServerClosed) {
			err = fmt.Errorf("serve the status page on %s: %w", ln.Addr(), served)
		}
	}
	return errors.Join(err, s.watch.wait(stop))
}

// limitListener accepts no more than n connections at a time; further ones wait
// in the kernel's queue.
func limitListener(ln net.Listener, n int) net.Listener {
	return &limitedListener{Listener: ln, slots: make(chan struct{}, n), closed: make(chan struct{})}
}

type limitedListener struct {
	net.Listener
	slots  chan struct{}
	closed chan struct{}
	once   sync.Once
}

func (l *limitedListener) Accept() (net.Conn, error) {
	select {
	case l.slots <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	conn, err := l.Listener.Accept()
	if err != nil {
		<-l.slots
		return nil, err
	}
	return &limitedConn{Conn: conn, free: sync.OnceFunc(func() { <-l.slots })}, nil
}

func (l *limitedListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

type limitedConn struct {
	net.Conn
	free func()
}

func (c *limitedConn) Close() error {
	defer c.free()
	return c.Conn.Close()
}
