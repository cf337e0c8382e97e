package work

import (
	"context"
	"os"

	"go.uber.org/zap"

	"baton/internal/config"
	"baton/internal/doctor"
)

// FirstCheck examines the servers and settings of the jobs when this process leads for the first time, beside the jobs and over
// connections of its own, so that they never wait for it. It logs grave findings, once for all locks that the process comes to lead.
type FirstCheck struct {
	config config.Config
	log    *zap.Logger
	turn   chan struct{} // has room for one examination
	over   bool          // of the one that has the turn
}

// NewFirstCheck makes a FirstCheck that has examined nothing.
func NewFirstCheck(c config.Config, log *zap.Logger) *FirstCheck {
	return &FirstCheck{config: c, log: log, turn: make(chan struct{}, 1)}
}

// Run examines, unless that has been done. A term that ends too early leaves it to another.
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
