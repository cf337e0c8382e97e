package status

import (
	"log"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
)

// handshakesTold is how often the log tells of a handshake that failed.
const handshakesTold = time.Minute

// newServerLog is the log of the HTTP server itself. A handshake of TLS fails whenever
// somebody tries the port, such as a load balancer, each time: that is told now and then
// alone, since it may be a client that does not take the certificate.
func newServerLog(to *zap.Logger) *log.Logger { return log.New(&serverLog{to: to}, "", 0) }

type serverLog struct {
	to *zap.Logger

	mu    sync.Mutex
	told  time.Time // when a handshake was told of
	quiet int       // that were not, since
}

func (l *serverLog) Write(line []byte) (int, error) {
	text := strings.TrimSpace(string(line))
	if !strings.Contains(text, "TLS handshake error") {
		l.to.Warn(text)
		return len(line), nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Since(l.told) < handshakesTold {
		l.quiet++
		l.to.Debug(text)
		return len(line), nil
	}
	l.to.Info(text, zap.Int("untold", l.quiet))
	l.told, l.quiet = time.Now(), 0
	return len(line), nil
}
