package metrics

import (
	"fmt"
	"strings"

	"go.uber.org/zap"

	"baton/internal/status/web"
)

// scrapeLog is the log of the metrics exporter, which writes a line for each metric that it could
// not send: when the client hangs up, one for every metric. So it is throttled.
type scrapeLog struct {
	to     *zap.Logger
	broken web.Throttle
}

func (l *scrapeLog) Println(what ...any) {
	text := strings.TrimSpace(fmt.Sprintln(what...))
	l.broken.Log(func(count int) {
		l.to.Info("metrics were not sent whole", zap.String("error", text), zap.Int("count", count))
	})
}
