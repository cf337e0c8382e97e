package web

import (
	"log"
	"strings"

	"go.uber.org/zap"
)

// NewServerLog returns the log of the HTTP server itself. It limits the number of lines about failed TLS handshakes, because a handshake
// also fails if a load balancer only tests the port. It does not drop all of these lines, because a client may also reject the certificate.
func NewServerLog(to *zap.Logger) *log.Logger { return log.New(&serverLog{to: to}, "", 0) }

type serverLog struct {
	to         *zap.Logger
	handshakes Throttle
}

func (l *serverLog) Write(line []byte) (int, error) {
	text := strings.TrimSpace(string(line))
	if strings.Contains(text, "TLS handshake error") {
		l.handshakes.Log(func(count int) { l.to.Info(text, zap.Int("count", count)) })
	} else {
		l.to.Warn(text)
	}
	return len(line), nil
}
