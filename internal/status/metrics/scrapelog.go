package metrics

import (
	"fmt"
	"strings"

	"go.uber.org/zap"

	"baton/internal/status/web"
)

// scrapeLog is the log of the exporter of metrics. It has a line for each metric that could
// not be written, so one for each of all when the client has hung up.
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
