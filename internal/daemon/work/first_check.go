package work

import (
	"context"
	"os"

	"go.uber.org/zap"

	"baton/internal/config"
	"baton/internal/doctor"
)

// FirstCheck examines the servers and settings of the jobs when this process leads for the first time. It runs beside the jobs and over its
// own connections, so that the jobs never wait for it. It logs the grave findings only once, even if the process leads under several locks.
type FirstCheck struct {
	config config.Config
	log    *zap.Logger
	turn   chan struct{} // has room for one examination
	over   bool          // the examination is done; only the holder of turn reads and writes over
}

// NewFirstCheck returns a FirstCheck that has examined nothing.
func NewFirstCheck(c config.Config, log *zap.Logger) *FirstCheck {
	return &FirstCheck{config: c, log: log, turn: make(chan struct{}, 1)}
}

// Run makes the examination, unless an earlier term has made it. If a term ends before its examination has ended, a later term makes the
// examination.
func (f *FirstCheck) Run(ctx context.Context) {
	select {
	case f.turn <- struct{}{}:
		defer func() { <-f.turn }()
	case <-ctx.Done():
		return
	}
	if f.over || len(f.config.Jobs) == 0 {
		return
	}
	found := doctor.Examine(ctx, f.config, doctor.Options{Getenv: os.LookupEnv, Self: true})
	if ctx.Err() != nil {
		return
	}
	f.over = true
	for _, finding := range found {
		write := f.log.Warn
		switch finding.Severity {
		case doctor.SeverityError:
			write = f.log.Error
		case doctor.SeverityWarning:
		default:
			continue
		}
		write(finding.Subject+": "+finding.What, zap.String("consequence", finding.Consequence), zap.String("remedy", finding.Remedy))
	}
}
