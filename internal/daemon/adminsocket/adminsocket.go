// Package adminsocket serves the socket that receives a daemon's orders from its host.
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
	// Name is the name of the socket in the runtime directory.
	Name = "admin.sock"
	// mode also lets the group of the daemon give orders.
	mode = 0o660
)

// Path returns the default path of the socket of a daemon on this host: in systemd's runtime directory, or in the runtime directory of
// a unit called baton.
func Path(getenv func(string) (string, bool)) string {
	if path := own(getenv); path != "" {
		return path
	}
	return filepath.Join("/run/baton", Name)
}

// own returns the path of this daemon's socket, or "" if the daemon has no runtime directory.
func own(getenv func(string) (string, bool)) string {
	dirs, _ := getenv("RUNTIME_DIRECTORY")
	dir, _, _ := strings.Cut(dirs, ":") // a unit may have several directories
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, Name)
}

// Of returns the path of the socket of a daemon with the configuration h, or "" if the daemon has no socket.
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

// listener is the admin socket, together with the lock on the file beside the socket. The lock proves that the socket belongs to this
// process.
type listener struct {
	*net.UnixListener
	lock *os.File
}

func (l *listener) Close() error {
	return errors.Join(l.UnixListener.Close(), l.lock.Close())
}

// Listen binds the admin socket. If the path is "", it binds no socket. It replaces a socket that a dead process has left, but not the
// socket of a process that answers. If several processes call Listen at the same time, one succeeds.
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

// lock takes the lock that the owner of the socket holds as long as it lives. The file of the lock is never removed, because a process
// that removes it could remove the file of another owner.
func lock(path string) (*os.File, error) {
	file, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("http.admin_socket: %w", err)
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = fmt.Errorf("another process uses %s: is another baton running here?", path)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("http.admin_socket: %w", err), file.Close())
	}
	return file, nil
}

// bind binds the socket. From the beginning, only the user and the group of the socket can connect to it. The caller holds the lock.
func bind(path string) (*net.UnixListener, error) {
	if conn, err := net.Dial("unix", path); err == nil {
		_ = conn.Close() // no data was written
		return nil, fmt.Errorf("another process answers on %s: is another baton running here?", path)
	} else if errors.Is(err, syscall.ECONNREFUSED) {
		// A file of another type fails in the same way, but has another use.
		if info, err := os.Lstat(path); err == nil && info.Mode().Type() != fs.ModeSocket {
			return nil, fmt.Errorf("%s exists and is not a socket: write another path, or move that file", path)
		}
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	// A file that another thread creates at this moment also becomes private, which does no harm.
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
