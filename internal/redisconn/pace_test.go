package redisconn

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// after returns the depth after the given number of replies, whose records have the given size in bytes.
func (p *Pace) after(replies, size int, took time.Duration) int {
	for range replies {
		n := p.Depth()
		p.Learn(Paced{Records: n, Bytes: n * size, Largest: size, Took: took})
	}
	return p.Depth()
}

func TestPaceFollowsTheBytesOfReplies(t *testing.T) {
	p := NewPace(1000, 1<<20)
	for _, c := range []struct{ replies, size, low, high int }{
		{0, 0, 1, 1},          // the size of the first records is unknown
		{1, 100, 4, 4},        // at first the depth grows fast
		{20, 100, 1000, 1000}, // the depth does not grow above its maximum
		{1, 10_000, 104, 104}, // after a reply that was too large the depth decreases at once
		{1, 1 << 20, 1, 1},    // a reply has one record if one record is large enough
		{5, 5 << 20, 1, 1},
		{1, 100, 1, 1},    // a large record is remembered
		{60, 100, 4, 400}, // it is remembered for a while
		{600, 100, 1000, 1000},
	} {
		if got := p.after(c.replies, c.size, 0); got < c.low || got > c.high {
			t.Errorf("after %d replies of %d bytes a record: %d, want %d to %d", c.replies, c.size, got, c.low, c.high)
		}
	}
}

func TestPaceFollowsTheTimeOfReplies(t *testing.T) {
	p := NewPace(1000, 1<<20)
	const way = 5 * time.Millisecond // Redis is far away
	for _, c := range []struct {
		replies   int
		took      time.Duration
		low, high int
	}{
		{20, way, 1000, 1000},
		{20, way + time.Millisecond, 1000, 1000},
		{1, way + 3*time.Millisecond, 500, 500}, // the reply took too long, so the depth is halved
		{2, way + 3*time.Millisecond, 125, 125},
		{1, way, 188, 188},              // now the depth grows slowly
		{50, way + time.Second, 64, 64}, // another program uses the processor
		{20, way, 1000, 1000},
	} {
		if got := p.after(c.replies, 1, c.took); got < c.low || got > c.high {
			t.Errorf("after %d replies of %v: %d, want %d to %d", c.replies, c.took, got, c.low, c.high)
		}
	}
}

// A small flush has the same steps even on a busy machine.
func TestPaceOfFewRecordsDoesNotFollowTime(t *testing.T) {
	p, slow := NewPace(1000, 1<<20), NewPace(1000, 1<<20)
	for range 4 {
		if p.Depth() != slow.Depth() {
			t.Errorf("%d records on an idle machine, %d on a busy one", p.Depth(), slow.Depth())
		}
		p.after(1, 100, time.Millisecond)
		slow.after(1, 100, time.Second)
	}
}

// With any replies, the depth is at least one and at most the maximum. After a large record, the depth is small enough for many records
// of that size.
func TestPaceStaysWithinItsLimits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most, bytes := rapid.IntRange(1, 5000).Draw(t, "most"), rapid.IntRange(1, 4<<20).Draw(t, "bytes")
		p := NewPace(most, bytes)
		for range rapid.IntRange(1, 60).Draw(t, "replies") {
			records := rapid.IntRange(0, p.Depth()).Draw(t, "records")
			largest := rapid.IntRange(0, 64<<20).Draw(t, "largest")
			p.Learn(Paced{Records: records, Bytes: records * largest, Largest: min(records, 1) * largest,
				Took: time.Duration(rapid.IntRange(0, 1e9).Draw(t, "took"))})
			if n := p.Depth(); n < 1 || n > most || records > 0 && n > 1 && n*largest > manyLarge*bytes {
				t.Fatalf("asks for %d after records of %d bytes", n, largest)
			}
		}
	})
}
