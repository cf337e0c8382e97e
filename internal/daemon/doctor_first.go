package daemon

import (
	"context"
	"os"
	"sync/atomic"

	"go.uber.org/zap"

	"baton/internal/config"
)

// firstLook examines what the jobs stand on when this process leads for the first
// time, beside the jobs and over connections of its own, so that they never wait for
// it. What is grave is told in the log, once.
type firstLook struct {
	config config.Config
	log    *zap.Logger
	over   atomic.Bool
}

// look looks, unless that has been done. A term that ends too early leaves it to the next.
func (f *firstLook) look(ctx context.Context) {
	if f.over.Load() || len(f.config.Jobs) == 0 {
		return
	}
	found := Doctor(ctx, f.config, DoctorOptions{Getenv: os.LookupEnv, Self: true})
	if ctx.Err() != nil {
		return
	}
	f.over.Store(true)
	for _, finding := range found {
		tell := f.log.Warn
		switch finding.Severity {
		case SeverityError:
			tell = f.log.Error
		case SeverityWarning:
		default:
			continue
		}
		tell(finding.Subject+": "+finding.What, zap.String("consequence", finding.Consequence), zap.String("remedy", finding.Remedy))
	}
}
