package flush

import (
	"context"
	"reflect"
	"time"

	"baton/internal/flush/row"
)

// catalogue is the catalogue's entry of a table, read beside the runs.
type catalogue struct {
	began time.Time
	ended chan struct{} // closed once table and err are set
	table row.Table
	err   error
}

// readAhead begins to read the catalogue again if that will soon be due, so that in a quick sequence no run has to wait for it. The
// reading outlives the run.
func (r *run) readAhead(ctx context.Context) {
	if time.Since(r.verified) < verifyEvery/2 || r.catalogue.Load() != nil {
		return
	}
	c := &catalogue{began: time.Now(), ended: make(chan struct{})}
	r.catalogue.Store(c)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), verifyEvery)
	go func() {
		defer cancel()
		defer close(c.ended)
		c.table, c.err = r.cfg.Sink.Table(ctx, r.cfg.Mapping.Table)
	}()
}

// learn uses a finished reading. After a difference or an error, the next run that writes reads the catalogue once more.
func (p *Pipeline) learn() {
	c := p.catalogue.Load()
	if c == nil {
		return
	}
	select {
	case <-c.ended:
		p.catalogue.Store(nil)
	default:
		return
	}
	switch known := p.compiled.Load(); {
	case c.err != nil || known == nil || c.began.Before(p.verified):
	case reflect.DeepEqual(c.table, known.mapping.Plan().Table):
		p.verified = c.began
	default:
		p.verified = p.verified.Add(-verifyEvery) // it is due
	}
}
