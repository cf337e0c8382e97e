package baton

import (
	"testing"
	"time"
)

// TestDefaultsFitTheLease checks the defaults for several TTLs. The work must have time to end, and one renewal may fail.
func TestDefaultsFitTheLease(t *testing.T) {
	const ms, sec = time.Millisecond, time.Second
	times := func(l Lock) [5]time.Duration { return [5]time.Duration{l.TTL, l.Heartbeat, l.Timeout, l.Poll, l.Drain} }
	for ttl, want := range map[time.Duration][5]time.Duration{
		0:           {10 * sec, 2 * sec, sec, 2 * sec, 2 * sec},
		time.Minute: {time.Minute, 2 * sec, sec, 2 * sec, 2 * sec},
		5 * sec:     {5 * sec, sec, 500 * ms, sec, sec},
		sec:         {sec, 200 * ms, 100 * ms, 200 * ms, 200 * ms},
	} {
		got := Lock{Key: "k", TTL: ttl}.withDefaults()
		if times(got) != want {
			t.Errorf("ttl %v: ttl, heartbeat, timeout, poll and drain are %v, want %v", ttl, times(got), want)
		}
		if err := got.check(); err != nil {
			t.Errorf("ttl %v: %v", ttl, err)
		}
	}
	given := Lock{Key: "k", TTL: time.Minute, Heartbeat: sec, Timeout: 2 * sec, Poll: 3 * sec, Drain: 4 * sec}.withDefaults()
	if times(given) != [5]time.Duration{time.Minute, sec, 2 * sec, 3 * sec, 4 * sec} {
		t.Errorf("what is given is replaced: %+v", given)
	}
}
