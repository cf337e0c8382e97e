package capture

import (
	"context"
	"io"
	"strconv"
	"testing"

	"baton/internal/flush"
	"baton/internal/flush/row"
	"baton/internal/redisconn"
	"baton/internal/redisconn/follow"
	"baton/internal/testsupport"
)

// noKeys has no keys. All rows that are searched for are missing if gone is true.
type noKeys struct {
	named
	gone bool
}

func (noKeys) Stage(context.Context, string, string) (st flush.Stage, ok bool, err error) {
	return st, true, nil
}

func (noKeys) Read(context.Context, flush.Stage, func(flush.Page) error) error { return nil }

func (noKeys) Pass(flush.Stage) (generation int64, missed error) { return 0, nil }

func (k noKeys) StillMissing(_ context.Context, records []row.Record) ([]row.Record, error) {
	if k.gone {
		return records, nil
	}
	return nil, nil
}

// A failover may lose the command that has removed a key, or set it. So seen must cover the keys that a pass has not found, and each search
// of its sweep. The place must say that the pass is owed before rows are swept.
func TestSeenCoversWhatAPassDoesNotFind(t *testing.T) {
	server := testsupport.StartRedis(t)
	store, err := redisconn.Open(redisconn.Options{URL: server.URL()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	masters, err := store.Masters(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	head, err := follow.Head(t.Context(), server.Conn())
	if err != nil {
		t.Fatal(err)
	}
	for _, owed := range []passOwed{owesPass, owesDelete} {
		for _, gone := range []bool{false, true} {
			f := fed(t, 1<<20)
			h := followerOf(store)
			h.watch = &watch{follower: h, readers: []*streamReader{newStreamReader(h, masters[0])}, end: func() {}}
			f.mark.at, f.mark.seen = follow.Position{ReplID: head.ReplID, Offset: head.Offset + 1<<20}, -1
			b := &batch{passesOwed: 1, owed: owed, cursors: []batchCursor{{f.mark, f.mark.at, noSlots}}, promotions: f.promotions}
			job := string(rune(owed)) + strconv.FormatBool(gone)
			c := &Capture{keys: noKeys{gone: gone}, store: store, options: Options{Job: job}, batch: b}
			store.Attached(attached(job, c.Name()), func() io.Closer { return closer{f.feed} })
			var places []string
			err := c.readAll(t.Context(), nil, b, func(p flush.Page) error { places = append(places, p.Move.To); return nil })
			if err != nil || len(places) != 1 || f.mark.seen < head.Offset {
				t.Errorf("%c: %v, %q, seen %d; want one place, and the offset %d or more", owed, err, places, f.mark.seen, head.Offset)
			} else if p, err := parsePosition(places[0]); err != nil || p.owed != owed {
				t.Errorf("%q, %v; want a place that owes %c", places[0], err, owed)
			}
			f.mark.seen = -1
			if _, err := c.StillMissing(t.Context(), []row.Record{{Key: "s:1"}}); err != nil || f.mark.seen < head.Offset {
				t.Errorf("%c, missing: %v: %v, seen %d after the search; want %d or more", owed, gone, err, f.mark.seen, head.Offset)
			}
		}
	}
}
