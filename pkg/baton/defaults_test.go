package baton

import (
	"testing"
	"time"
)

// The defaults fit the lease: with each TTL the work has time to end, and a renewal may be missed.
func TestDefaultsFitTheLease(t *testing.T) {
	for ttl, want := range map[time.Duration]Lock{
		0:               {TTL: 10 * time.Second, Heartbeat: 2 * time.Second, Timeout: time.Second, Poll: 2 * time.Second, Drain: 2 * time.Second},
		time.Minute:     {TTL: time.Minute, Heartbeat: 2 * time.Second, Timeout: time.Second, Poll: 2 * time.Second, Drain: 2 * time.Second},
		5 * time.Second: {TTL: 5 * time.Second, Heartbeat: time.Second, Timeout: 500 * time.Millisecond, Poll: time.Second, Drain: time.Second},
		time.Second:     {TTL: time.Second, Heartbeat: 200 * time.Millisecond, Timeout: 100 * time.Millisecond, Poll: 200 * time.Millisecond, Drain: 200 * time.Millisecond},
	} {
		got := Lock{Key: "k", TTL: ttl}.withDefaults()
		if got.TTL != want.TTL || got.Heartbeat != want.Heartbeat || got.Timeout != want.Timeout || got.Poll != want.Poll || got.Drain != want.Drain {
			t.Errorf("ttl %v: heartbeat %v, timeout %v, poll %v, drain %v; want %+v", ttl, got.Heartbeat, got.Timeout, got.Poll, got.Drain, want)
		}
		if err := got.check(); err != nil {
			t.Errorf("ttl %v: %v", ttl, err)
		}
	}
	given := Lock{Key: "k", TTL: time.Minute, Heartbeat: time.Second, Timeout: 2 * time.Second, Poll: 3 * time.Second, Drain: 4 * time.Second}.withDefaults()
	if given.Heartbeat != time.Second || given.Timeout != 2*time.Second || given.Poll != 3*time.Second || given.Drain != 4*time.Second {
		t.Errorf("what is given is replaced: %+v", given)
	}
}
