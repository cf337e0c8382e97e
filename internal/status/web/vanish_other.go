//go:build !linux

package web

import (
	"net"
	"time"
)

// noticeVanished does nothing on this system, so the kernel's own limit applies.
func noticeVanished(net.Conn, time.Duration) error { return nil }
