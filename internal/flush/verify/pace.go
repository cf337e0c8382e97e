package verify

import (
	"context"
	"time"
)

// pace limits the number of items that are processed in a second.
type pace struct {
	rate  int // items in a second; 0 means no limit
	began time.Time
	done  int
}

// rest waits until n more items may be read or marked.
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
	if wait < -time.Second { // a phase that was slower than the rate does not allow a faster phase afterwards
		p.began, p.done = time.Now(), 0
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(wait):
		return nil
	}
}
