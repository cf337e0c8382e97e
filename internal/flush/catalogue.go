package flush

import (
	"context"
	"reflect"
	"time"

	"baton/internal/flush/row"
)

// catalogue holds the job's table as the database's catalogue describes it. Another goroutine reads the catalogue, so that runs need not
// wait for that reading.
type catalogue struct {
	began time.Time
	ended chan struct{} // closed after table and err are set
	table row.Table
	err   error
}

// readAhead starts to read the catalogue again if a run will need the catalogue soon, so that short runs do not wait for it. The reading
// may continue after the end of the run.
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

// learn uses what readAhead has read, if that reading is complete. If the catalogue differs from the one that the pipeline uses, or the
// reading failed, the next run that writes reads the catalogue again.
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
		p.verified = p.verified.Add(-verifyEvery) // the next run must read the catalogue
	}
}
