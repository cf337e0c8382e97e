package heartbeat_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"baton/internal/heartbeat"
)

var timing = heartbeat.Timing{
	TTL: 10 * time.Second, Interval: 2 * time.Second, Timeout: time.Second,
	Margin: 350 * time.Millisecond, Drain: 2 * time.Second,
}

// These are the limits of the timing above, counted from the sending of the request.
const (
	softAfter = 7650 * time.Millisecond
	hardAfter = 9650 * time.Millisecond
)

// bubbleClock follows the time of the synctest bubble; skew lets a test suspend the machine: the boot clock continues, but timers do
// not.
func bubbleClock() (clock heartbeat.Clock, skew *atomic.Int64) {
	start := time.Now()
	skew = new(atomic.Int64)
	return func() heartbeat.Instant {
		return heartbeat.Instant(time.Since(start) + time.Duration(skew.Load()))
	}, skew
}

func TestTrustCountsFromTheSending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock, _ := bubbleClock()
		sent := clock()
		time.Sleep(900 * time.Millisecond) // the reply is slow
		w := heartbeat.NewWindow(clock, timing, sent)
		if got, want := w.UntilSoft(), softAfter-900*time.Millisecond; got != want {
			t.Errorf("after a slow grant the soft stop is in %v, want %v", got, want)
		}
		sent = clock()
		time.Sleep(900 * time.Millisecond)
		w.Extend(sent)
		if got, want := w.UntilHard(), hardAfter-900*time.Millisecond; got != want {
			t.Errorf("after a slow renewal the hard stop is in %v, want %v", got, want)
		}
	})
}

func TestALateReplyNeverShortensNorRevivesTheWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock, _ := bubbleClock()
		early := clock()
		time.Sleep(time.Second)
		w := heartbeat.NewWindow(clock, timing, clock())
		if !w.Extend(early) {
			t.Error("an older request's answer was refused inside the window")
		}
		if got := w.UntilHard(); got != hardAfter {
			t.Errorf("an older request's answer moved the hard stop to %v, want %v", got, hardAfter)
		}
		late := clock().Add(9 * time.Second)
		time.Sleep(hardAfter)
		if w.Extend(late) {
			t.Error("a reply after the hard stop revived the window")
		}
		if w.UntilHard() > 0 {
			t.Error("the hard stop moved after it had passed")
		}
	})
}

// A run is refused at the soft stop. If a renewal that is answered then opened the window again, the run would wait for an end that does
// not come.
func TestASoftStopThatWasSeenIsFinal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock, _ := bubbleClock()
		w := heartbeat.NewWindow(clock, timing, clock())
		time.Sleep(2 * time.Second)
		sent := clock()
		time.Sleep(softAfter - 2*time.Second + 150*time.Millisecond)
		if w.Trusted() {
			t.Fatal("the window is open after the soft stop")
		}
		if !w.Extend(sent) {
			t.Error("a renewal within the drain was refused")
		}
		if got, want := w.UntilHard(), hardAfter-clock().Sub(sent); got != want {
			t.Errorf("the hard stop is in %v, want %v", got, want)
		}
		if w.Trusted() {
			t.Error("a renewal opened the window again")
		}
		stopped := false
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go w.Guard(ctx, func() { stopped = true }, func() {})
		synctest.Wait()
		if !stopped {
			t.Error("the guard did not stop the work, although a run was refused")
		}
	})
}

func TestGuardStopsOnTimeAlthoughRenewHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock, _ := bubbleClock()
		w := heartbeat.NewWindow(clock, timing, clock())
		hung := make(chan struct{})
		go func() {
			_ = heartbeat.Keep(t.Context(), w, func(context.Context) error { <-hung; return nil }, heartbeat.Options{})
		}()
		start := time.Now()
		var soft, hard time.Duration
		w.Guard(t.Context(), func() { soft = time.Since(start) }, func() { hard = time.Since(start) })
		if soft != softAfter || hard != hardAfter {
			t.Errorf("soft stop after %v and hard stop after %v, want %v and %v", soft, hard, softAfter, hardAfter)
		}
		close(hung)
		synctest.Wait()
	})
}

func TestGuardNoticesALossAtOnceAndKeepsTheHardStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock, _ := bubbleClock()
		w := heartbeat.NewWindow(clock, timing, clock())
		const lostAfter = 3042 * time.Millisecond // if the guard does not check by itself
		time.AfterFunc(lostAfter, w.Lose)
		start := time.Now()
		var soft, hard time.Duration
		w.Guard(t.Context(), func() { soft = time.Since(start) }, func() { hard = time.Since(start) })
		if soft != lostAfter || hard != hardAfter {
			t.Errorf("soft stop after %v and hard stop after %v, want %v and %v", soft, hard, lostAfter, hardAfter)
		}
		if w.Trusted() || w.Extend(clock()) {
			t.Error("a lost lease is trusted or extended")
		}
	})
}

func TestAStoppedProcessWakesToAClosedWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock, skew := bubbleClock()
		w := heartbeat.NewWindow(clock, timing, clock())
		// The machine is suspended for an hour: no timer has moved, but the boot clock has.
		time.AfterFunc(time.Second, func() { skew.Store(int64(time.Hour)) })
		start := time.Now()
		var soft, hard time.Duration
		w.Guard(t.Context(), func() { soft = time.Since(start) }, func() { hard = time.Since(start) })
		if soft > 1100*time.Millisecond {
			t.Errorf("the guard slept %v before it noticed", soft)
		}
		if got := hard - soft; got != 250*time.Millisecond {
			t.Errorf("the work got %v to return, want 250ms", got)
		}
	})
}

func TestKeepRenewsUntilItIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock, _ := bubbleClock()
		w := heartbeat.NewWindow(clock, timing, clock())
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		renewals := 0
		err := heartbeat.Keep(ctx, w, func(context.Context) error { renewals++; return nil }, heartbeat.Options{})
		if err != nil || !w.Trusted() {
			t.Fatalf("Keep: %v, trusted %v", err, w.Trusted())
		}
		if perHour := 1800; renewals < perHour*95/100 || renewals > perHour*105/100 {
			t.Errorf("%d renewals in an hour, want about %d", renewals, perHour)
		}
	})
}

func TestAnUnansweredRenewalIsAskedAgainAtOnceAndMovesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock, _ := bubbleClock()
		w := heartbeat.NewWindow(clock, timing, clock())
		start := time.Now()
		var asked []time.Duration
		err := heartbeat.Keep(t.Context(), w, func(ctx context.Context) error {
			asked = append(asked, time.Since(start))
			<-ctx.Done() // the store hangs
			return ctx.Err()
		}, heartbeat.Options{})
		if !errors.Is(err, heartbeat.ErrExpired) {
			t.Fatalf("Keep: %v, want ErrExpired", err)
		}
		if gap := asked[1] - asked[0]; gap != timing.Timeout {
			t.Errorf("asked again %v after an attempt of %v, want at once", gap, timing.Timeout)
		}
		if got := time.Since(start); got != hardAfter {
			t.Errorf("Keep gave up after %v, want %v", got, hardAfter)
		}
	})
}

// If each answer takes longer than an attempt may take, the next attempt waits longer.
func TestASlowStoreDoesNotCostTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock, _ := bubbleClock()
		w := heartbeat.NewWindow(clock, timing, clock())
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		renewed := 0
		err := heartbeat.Keep(ctx, w, func(ctx context.Context) error {
			select {
			case <-time.After(3 * timing.Timeout / 2):
				renewed++
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}, heartbeat.Options{})
		if err != nil || renewed < 600 {
			t.Errorf("in an hour: %v, after %d renewals", err, renewed)
		}
	})
}

func TestARenewalIsOverdueWhenItIsHalfAnIntervalLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock, _ := bubbleClock()
		w := heartbeat.NewWindow(clock, timing, clock())
		time.Sleep(3 * timing.Interval / 2)
		if w.Overdue() {
			t.Error("overdue after an interval and a half")
		}
		time.Sleep(time.Millisecond)
		if !w.Overdue() {
			t.Error("not overdue after more than an interval and a half")
		}
		w.Extend(clock())
		if w.Overdue() {
			t.Error("overdue although it has just been renewed")
		}
	})
}

func TestAStoreThatRefusesIsNotFlooded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock, _ := bubbleClock()
		w := heartbeat.NewWindow(clock, timing, clock())
		asked := 0
		_ = heartbeat.Keep(t.Context(), w, func(context.Context) error { asked++; return errors.New("connection refused") }, heartbeat.Options{})
		if asked > 30 {
			t.Errorf("%d attempts in one lease", asked)
		}
	})
}

func TestKeepEndsWhenTheLeaseIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock, _ := bubbleClock()
		w := heartbeat.NewWindow(clock, timing, clock())
		err := heartbeat.Keep(t.Context(), w, func(context.Context) error { return heartbeat.ErrLost }, heartbeat.Options{})
		if !errors.Is(err, heartbeat.ErrLost) || w.Trusted() {
			t.Errorf("Keep: %v, trusted %v; want ErrLost, false", err, w.Trusted())
		}
	})
}

func TestKeepRenewsAtOnceWhenAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock, _ := bubbleClock()
		w := heartbeat.NewWindow(clock, timing, clock())
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		now := make(chan struct{}, 1)
		now <- struct{}{}
		renewals := 0
		_ = heartbeat.Keep(ctx, w, func(context.Context) error { renewals++; return nil }, heartbeat.Options{Now: now})
		if renewals != 1 {
			t.Errorf("%d renewals in the first second, want the one asked for", renewals)
		}
	})
}

func TestTimingIsRefusedWhereOneMissedRenewalEndsTheTerm(t *testing.T) {
	cases := []struct {
		name   string
		change func(*heartbeat.Timing)
		ok     bool
	}{
		{"the defaults", func(*heartbeat.Timing) {}, true},
		{"equal to the ttl", func(h *heartbeat.Timing) { h.TTL = 7350 * time.Millisecond }, false},
		{"just above", func(h *heartbeat.Timing) { h.TTL = 7351 * time.Millisecond }, true},
		{"no drain", func(h *heartbeat.Timing) { h.Drain = 0 }, false},
		{"a negative interval", func(h *heartbeat.Timing) { h.Interval = -1 }, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			h := timing
			c.change(&h)
			if err := h.Validate(); (err == nil) != c.ok {
				t.Errorf("Validate(%+v) = %v", h, err)
			}
		})
	}
}

func TestBoottimeGoesOn(t *testing.T) {
	a := heartbeat.Boottime()
	for b := a; b == a; b = heartbeat.Boottime() {
	}
	if d := heartbeat.Boottime().Sub(a); d <= 0 || d > time.Minute {
		t.Errorf("the clock moved by %v", d)
	}
}

// Leases that share a beat are renewed at the same moments, whenever the leases began.
func TestLeasesWithOneBeatAreRenewedTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock, _ := bubbleClock()
		start := time.Now()
		ctx, cancel := context.WithCancel(t.Context())
		beat := &heartbeat.Beat{}
		var mu sync.Mutex
		moments := map[time.Duration]int{}
		var wg sync.WaitGroup
		const leases = 20
		for i := range leases {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * 10 * time.Millisecond)
				w := heartbeat.NewWindow(clock, timing, clock())
				_ = heartbeat.Keep(ctx, w, func(context.Context) error {
					mu.Lock()
					moments[time.Since(start)]++
					mu.Unlock()
					time.Sleep(time.Duration(i) * time.Millisecond) // the answers come at different times
					return nil
				}, heartbeat.Options{Beat: beat})
			})
		}
		const intervals = 10
		time.Sleep(intervals * timing.Interval)
		cancel()
		wg.Wait()
		renewals := 0
		for _, n := range moments {
			renewals += n
		}
		// The first wait of each lease is its own interval if that is shorter than the time to the next common moment.
		if most := intervals * 12 / 10; len(moments) > most || renewals < leases*(intervals-2) {
			t.Errorf("%d renewals at %d moments; want all leases at the same, at most %d", renewals, len(moments), most)
		}
	})
}

// A lease that is no longer renewed is not overdue. Otherwise other work would wait for a renewal that does not come.
func TestALeaseThatIsNotKeptAnyMoreIsNotOverdue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock, _ := bubbleClock()
		ctx, cancel := context.WithCancel(t.Context())
		beat, ended := &heartbeat.Beat{}, make(chan struct{})
		w := heartbeat.NewWindow(clock, timing, clock())
		go func() {
			defer close(ended)
			_ = heartbeat.Keep(ctx, w, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, heartbeat.Options{Beat: beat})
		}()
		for time.Sleep(timing.Interval); !beat.Overdue(clock); time.Sleep(timing.Interval / 10) {
			if w.UntilHard() <= 0 {
				t.Fatal("an unanswered renewal was not overdue before the hard stop")
			}
		}
		cancel()
		<-ended
		if time.Sleep(timing.Interval); beat.Overdue(clock) || !w.Overdue() {
			t.Error("the lease counts as overdue although it is not kept any more")
		}
	})
}
