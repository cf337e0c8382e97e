package verify

import (
	"context"
	"time"
)

// pace limits work to a rate.
type pace struct {
	rate  int // a second; 0: any
	began time.Time
	done  int
}

// rest waits until n more are allowed.
func (p *pace) rest(ctx context.Context, n int) error {
	if p.rate <= 0 {
		return context.Cause(ctx)
	}
	if p.began.IsZero() {
		p.began = time.Now()
	}
	p.done += n
	due := p.began.Add(time.Duration(float64(p.done) / float64(p.rate) * float64(time.Second)))
	wait := time.Until(due)
	if wait < -time.Second { // slow phases are not made up for
		p.began, p.done = time.Now(), 0
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(wait):
		return nil
	}
}
