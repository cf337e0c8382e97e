// Package adminsocket serves the socket through which a daemon takes orders from its host.
package adminsocket

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"baton/internal/config"
)

const (
	// Name is the socket's in the runtime directory.
	Name = "admin.sock"
	// mode lets the group of the daemon give orders, too.
	mode = 0o660
)

// Path is where a daemon on this host takes orders, by default: in systemd's
// runtime directory, or where that is for a unit called baton.
func Path(getenv func(string) (string, bool)) string {
	if path := own(getenv); path != "" {
		return path
	}
	return filepath.Join("/run/baton", Name)
}

// own is the daemon's own; "" without a runtime directory.
func own(getenv func(string) (string, bool)) string {
	dirs, _ := getenv("RUNTIME_DIRECTORY")
	dir, _, _ := strings.Cut(dirs, ":") // a unit may have several
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, Name)
}

// Of is where a daemon with that configuration takes orders; "" is nowhere.
func Of(h config.HTTP, getenv func(string) (string, bool)) string {
	switch path := h.AdminSocket; path {
	case "":
		return own(getenv)
	case config.Off:
		return ""
	default:
		return path
	}
}

// listener is the admin socket, and the lock on the file beside it, which says that
// it is ours.
type listener struct {
	*net.UnixListener
	lock *os.File
}

func (l *listener) Close() error {
	return errors.Join(l.UnixListener.Close(), l.lock.Close())
}

// Listen binds the admin socket; "" binds nothing. A socket that a dead process has
// left is replaced, one that a process answers on is not. Of several processes that try it
// at the same time one succeeds.
func Listen(path string) (net.Listener, error) {
	if path == "" {
		return nil, nil
	}
	held, err := lock(path)
	if err != nil {
		return nil, err
	}
	l, err := bind(path)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("http.admin_socket: %w", err), held.Close())
	}
	return &listener{l, held}, nil
}

// lock takes the lock that the owner of the socket holds for as long as it lives. Its
// file stays: who removed it could remove another one's.
func lock(path string) (*os.File, error) {
	file, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("http.admin_socket: %w", err)
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = fmt.Errorf("another process has %s: is another baton running here?", path)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("http.admin_socket: %w", err), file.Close())
	}
	return file, nil
}

// bind binds the socket, which only its user and group can ever connect to. The
// caller has the lock.
func bind(path string) (*net.UnixListener, error) {
	if conn, err := net.Dial("unix", path); err == nil {
		_ = conn.Close() // nothing was written
		return nil, fmt.Errorf("another process answers on %s: is another baton running here?", path)
	} else if errors.Is(err, syscall.ECONNREFUSED) {
		// Any other file answers the same, and has another use.
		if info, err := os.Lstat(path); err == nil && info.Mode().Type() != fs.ModeSocket {
			return nil, fmt.Errorf("%s is there, and is no socket: name another path, or move it away", path)
		}
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	// A file that another thread makes in this moment is private, too: no harm is done.
	before := syscall.Umask(0o077)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	syscall.Umask(before)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, mode); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}
