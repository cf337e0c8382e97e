package capture

import (
	"reflect"
	"testing"

	"baton/internal/redisconn/follow"
)

func TestAPlaceIsReadAsItWasWritten(t *testing.T) {
	at := follow.Position{ReplID: "0123456789012345678901234567890123456789", Offset: 1 << 50, DB: follow.AnyDB}
	other := follow.Position{ReplID: "x", DB: 15}
	for _, p := range []jobPosition{
		{masters: []masterPosition{{at, 1<<50 + 7, noSlots}}, owed: owesNothing, serial: 1},
		{masters: []masterPosition{{other, 0, "abcd0123"}, {at, 9, "00000000"}}, owed: owesPass},
		{masters: []masterPosition{{at, 0, noSlots}}, owed: owesDelete, serial: 1<<64 - 1},
		{owed: owesPass, serial: 3},
	} {
		if got, err := parsePosition(p.String()); err != nil || !reflect.DeepEqual(got, p) {
			t.Errorf("%q is %+v, %v; want %+v", p, got, err, p)
		}
	}
	if p, err := parsePosition(""); err != nil || p.owed != owesPass || len(p.masters) > 0 {
		t.Errorf("no place: %+v, %v", p, err)
	}
	for _, bad := range []string{
		"x", "- ", "? 1", "-- 1", "- -1", "id 1 0 0 - 1", "id 1 0 0 - -", "id 1 0 0 - ? 1", "id -1 0 0 - - 1", "id 1 0 -2 - - 1",
		"id 1 0 0 - - 1 more", "id 1 0 0 -  - 1", "id 01 0 0 - - 1", "1526919030474-55 1234", "id 1 0 0 - id 2 0 - 1",
	} {
		if p, err := parsePosition(bad); err == nil {
			t.Errorf("%q is %+v", bad, p)
		}
	}
}

// After a break a batch leaves out deletions of rows. Its position is after these deletions, so it must record that a pass is owed: the
// next process may find the slots unchanged. Each earlier page must record it, too: its values may be those of a master that was replaced,
// and the new master may continue at the position before the batch.
func TestEachPlaceOfABatchSaysThatThereWasABreak(t *testing.T) {
	for _, breaks := range []bool{false, true} {
		m := &cursor{at: follow.Position{ReplID: "a", Offset: 10}, slots: "x"}
		f := newFeed(feedOptions{budget: 1 << 20})
		f.begun, f.joined, f.base, f.cursors = true, true, "a 5 0 5 x - 1", []*cursor{m}
		f.place, _ = parsePosition(f.base)
		f.pending["s:1"] = struct{}{}
		b, _, err := f.take(flushStop)
		if err != nil {
			t.Fatal(err)
		}
		if breaks {
			f.mu.Lock()
			f.noteSlotsLocked(m, "y", true)
			f.mu.Unlock()
		}
		if p, err := parsePosition(f.move(b, false).To); err != nil || (p.owed == owesPass) != breaks {
			t.Errorf("%v, the first of two pages: %+v, %v", breaks, p, err)
		}
		if p, err := parsePosition(f.move(b, true).To); err != nil || (p.owed == owesPass) != breaks || f.broke(b) != breaks {
			t.Errorf("%v: %+v, %v", breaks, p, err)
		}
	}
}
