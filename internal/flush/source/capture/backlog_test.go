package capture

import (
	"errors"
	"testing"

	"baton/internal/flush"
	"baton/internal/redisconn/follow"
)

// followsOn is the join of a stream that continues where the feed has left it.
func followsOn(f heard) follow.Joined {
	return follow.Joined{Kind: follow.Continued, At: f.mark.at, Backlog: 1 << 20}
}

func TestWithoutTheStreamNoBacklogIsZero(t *testing.T) {
	f := fed(t, 1<<20)
	want := func(n int64, why string) {
		t.Helper()
		got, err := f.backlog()
		text := ""
		if uncounted, ok := errors.AsType[*flush.UncountedError](err); ok {
			text = uncounted.Why
		}
		if got != n || text != why || (err == nil) != (why == "") {
			t.Errorf("%d, %v; want %d, %q", got, err, n, why)
		}
	}
	want(0, "")
	f.noteLeft(f.mark, f.streamReader, true) // to join for another feed
	want(0, "")
	f.joinsAt(followsOn(f))
	f.hears(2, "SET s:1 x")
	f.noteLeft(f.mark, f.streamReader, false)
	want(1, "") // the known change waits, no matter what else happens
	f.clear()
	want(0, "the stream is not joined yet")
	f.noteFailure(errors.New("refused"))
	want(0, "refused")
	f.joinsAt(followsOn(f))
	want(0, "")
}
