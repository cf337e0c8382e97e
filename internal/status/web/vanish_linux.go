package web

import (
	"errors"
	"net"
	"time"

	sys "golang.org/x/sys/unix"
)

// noticeVanished ends a connection whose client does not acknowledge data within a time. The
// kernel's own limit is a quarter of an hour, and a stream would keep its place until then.
func noticeVanished(conn net.Conn, within time.Duration) error {
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return nil
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return err
	}
	var set error
	err = raw.Control(func(fd uintptr) {
		set = sys.SetsockoptInt(int(fd), sys.IPPROTO_TCP, sys.TCP_USER_TIMEOUT, int(within.Milliseconds()))
	})
	return errors.Join(err, set)
}
