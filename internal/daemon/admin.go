package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"go.uber.org/zap"
)

const (
	// adminSocketName is the socket's in the runtime directory.
	adminSocketName = "admin.sock"
	// adminSocketMode lets the group of the daemon give orders, too.
	adminSocketMode = 0o660
	// reloadWithin is how long whoever asks for a reload waits.
	reloadWithin = 20 * time.Second
	reloadPath   = "/v1/reload"
)

// AdminSocket is where a daemon on this host takes orders, by default: in systemd's
// runtime directory, or where that is for a unit called baton.
func AdminSocket(getenv func(string) (string, bool)) string {
	if own := ownAdminSocket(getenv); own != "" {
		return own
	}
	return filepath.Join("/run/baton", adminSocketName)
}

// ownAdminSocket is the daemon's own; "" without a runtime directory.
func ownAdminSocket(getenv func(string) (string, bool)) string {
	dirs, _ := getenv("RUNTIME_DIRECTORY")
	dir, _, _ := strings.Cut(dirs, ":") // a unit may have several
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, adminSocketName)
}

// listenAdmin binds the admin socket; "" binds nothing. A socket that a dead process has
// left is replaced, one that somebody answers on is not.
func listenAdmin(path string) (net.Listener, error) {
	if path == "" {
		return nil, nil
	}
	if conn, err := net.Dial("unix", path); err == nil {
		_ = conn.Close() // nothing was written
		return nil, fmt.Errorf("http.admin_socket: another process answers on %s: is another baton running here?", path)
	} else if errors.Is(err, syscall.ECONNREFUSED) {
		if err := os.Remove(path); err != nil {
			return nil, fmt.Errorf("http.admin_socket: %w", err)
		}
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("http.admin_socket: %w", err)
	}
	if err := os.Chmod(path, adminSocketMode); err != nil {
		return nil, errors.Join(fmt.Errorf("http.admin_socket: %w", err), l.Close())
	}
	return l, nil
}

// serveAdmin takes orders until ctx ends.
func (n *node) serveAdmin(ctx context.Context, l net.Listener) {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+reloadPath, n.serveReload)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Second, ReadTimeout: 5 * time.Second, WriteTimeout: reloadWithin + time.Second, ErrorLog: zap.NewStdLog(n.log)}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		n.log.Error("the admin socket is served no more", zap.Error(err))
	}
}

// reloaded is what a reload came to.
type reloaded struct {
	Error string `json:"error,omitempty"`
}

func (n *node) serveReload(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), reloadWithin)
	defer cancel()
	answer := make(chan error, 1)
	var err error
	select {
	case n.reloadRequests <- reloadRequest{by: "baton reload", answer: answer}:
		select {
		case err = <-answer:
		case <-ctx.Done():
			err = errors.New("the daemon is still at it; see its log")
		}
	case <-ctx.Done():
		err = errors.New("the daemon does not take it: it is busy or about to end; see its log")
	}
	if err != nil {
		w.WriteHeader(http.StatusUnprocessableEntity)
		_ = json.NewEncoder(w).Encode(reloaded{Error: err.Error()}) // whoever asked may be gone
		return
	}
	_ = json.NewEncoder(w).Encode(reloaded{}) // so may they here
}

// Reload has the daemon that listens on an admin socket read its configuration again. An
// error says what was wrong with it: then the old one stays in force.
func Reload(ctx context.Context, socket string) error {
	ctx, cancel := context.WithTimeout(ctx, reloadWithin)
	defer cancel()
	client := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		},
	}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://baton"+reloadPath, bytes.NewReader(nil))
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("no daemon listens on %s: is it running on this host? --socket names another socket", socket)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("not allowed to use %s: ask as root, or as a member of its group", socket)
	case err != nil:
		return fmt.Errorf("ask the daemon on %s: %w", socket, err)
	}
	defer resp.Body.Close()
	var done reloaded
	if err := json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(&done); err != nil {
		return fmt.Errorf("ask the daemon on %s: %w", socket, err)
	}
	if done.Error != "" {
		return fmt.Errorf("not reloaded, the old configuration stays in force:\n%s", done.Error)
	}
	return nil
}
