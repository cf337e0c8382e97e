package metrics

import (
	"fmt"
	"strings"

	"go.uber.org/zap"

	"baton/internal/status/web"
)

// scrapeLog is the log of the metrics exporter. It limits the number of lines, because the exporter writes a line for each metric that it
// could not send. When the client hangs up, the exporter can send no metric at all.
type scrapeLog struct {
	to     *zap.Logger
	broken web.Throttle
}

func (l *scrapeLog) Println(what ...any) {
	text := strings.TrimSpace(fmt.Sprintln(what...))
	l.broken.Log(func(count int) {
		l.to.Info("metrics were not sent completely", zap.String("error", text), zap.Int("count", count))
	})
}
