package idlist

import (
	"context"
	"math"
)

const (
	// firstPages of each lane are used before more ids are collected.
	firstPages = 2
	// growth is how many times as many ids as the ones before the next ones are.
	growth = 2
)

// Pass collects the ids of a pass in several lists, and uses each before it collects the next one: small ones first, so
// that the database has something to do soon. While it writes what waits, the next ids are collected. To collect
// them at the same time as the rows are read takes longer: Redis does one after the other, and a scan that waits for
// the rows counts as slow (see redisconn.Pace), so that it asks for less each time.
//
// collect returns the next ids, sorted: as many as fit, or some more than most. more is false with the last of them.
// page is how many ids a page of each lane has together.
func Pass(
	ctx context.Context, page int, collect func(ctx context.Context, most int) (ids *List, more bool, err error), use func(*List) error,
) error {
	for most, more := firstPages*page, true; more; most = min(most, math.MaxInt/growth) * growth {
		var ids *List
		var err error
		if ids, more, err = collect(ctx, most); err != nil {
			return err
		}
		if err := use(ids); err != nil {
			return err
		}
	}
	return nil
}
