package sql

import (
	"context"
	"fmt"
	"time"

	"baton/internal/finding"
)

// clockTolerance is the reported difference of clocks.
const clockTolerance = time.Second

// Clock compares the server's clock, in microseconds of the epoch of time, with ours.
func (r *Report) Clock(ctx context.Context, ask func(ctx context.Context) (micros int64, err error)) {
	sent := time.Now()
	micros, err := ask(ctx)
	if err != nil {
		r.Unchecked("its clock", err)
		return
	}
	trip := time.Since(sent)
	apart := time.UnixMicro(micros).Sub(sent.Add(trip / 2)).Round(100 * time.Millisecond)
	if apart.Abs()-trip/2 <= clockTolerance {
		return
	}
	how := "ahead of"
	if apart < 0 {
		how = "behind"
	}
	r.Add(finding.SeverityWarning, fmt.Sprintf("its clock is %v %s this host's", apart.Abs(), how),
		"nothing is lost: neither leases nor fences go by clocks. But what the database dates by itself does not agree with what "+
			"producers and baton date", "run chrony or another NTP client on both hosts")
}
