package web

import (
	"errors"
	"net"
	"time"

	sys "golang.org/x/sys/unix"
)

// noticeVanished ends a connection if its client does not acknowledge data within the given time. Without this limit a vanished client
// would occupy its stream for a quarter of an hour, which is the kernel's own limit.
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
