package notify

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"baton/internal/notify/service"
)

// script is a target that does what the functions in do say, one for each attempt. After that it accepts every event.
type script struct {
	mu      sync.Mutex
	do      []func(ctx context.Context) error
	tried   []time.Duration // the times of the attempts, since the script was made
	events  []string        // the events of the attempts
	arrived []string
	began   time.Time
}

func newScript(do ...func(ctx context.Context) error) *script {
	return &script{do: do, began: time.Now()}
}

func (s *script) Send(ctx context.Context, e Event) error {
	s.mu.Lock()
	s.tried = append(s.tried, time.Since(s.began))
	s.events = append(s.events, e.Text)
	var do func(ctx context.Context) error
	if len(s.do) > 0 {
		do, s.do = s.do[0], s.do[1:]
	}
	s.mu.Unlock()
	if do != nil {
		if err := do(ctx); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.arrived = append(s.arrived, e.Text)
	return nil
}

func (s *script) got() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.arrived)
}

func (s *script) attempts() []time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.tried)
}

var errAway = errors.New("away")

func fails(context.Context) error { return errAway }

func hangs(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// always returns more copies of f than any test needs.
func always(f func(context.Context) error) []func(context.Context) error {
	return slices.Repeat([]func(context.Context) error{f}, 10_000)
}

// rig is a dispatcher with the counts of its outcomes and with its log.
type rig struct {
	*Dispatcher
	logs *observer.ObservedLogs
	mu   sync.Mutex
	all  map[string]int
}

func newRig() *rig {
	core, logs := observer.New(zapcore.DebugLevel)
	r := &rig{logs: logs, all: map[string]int{}}
	r.Dispatcher = NewDispatcher(zap.New(core), func(target string, o Outcome, n int) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.all[target+" "+string(o)] += n
	})
	return r
}

func (r *rig) outcomes() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.TrimPrefix(fmt.Sprint(r.all), "map")
}

// at returns the number of log lines of a level that contain the text.
func (r *rig) at(level zapcore.Level, text string) int {
	n := 0
	for _, e := range r.logs.All() {
		if e.Level == level && strings.Contains(e.Message, text) {
			n++
		}
	}
	return n
}

func route(name string, target Target) Route {
	return Route{Name: name, Target: target, Timeout: 10 * time.Second, GiveUpAfter: time.Hour}
}

func (r *rig) send(name string, texts ...string) {
	for _, text := range texts {
		r.Send(name, Event{Kind: Failed, Text: text, Job: "users"})
	}
}

func numbers(from, to int) []string {
	var all []string
	for i := from; i < to; i++ {
		all = append(all, strconv.Itoa(i))
	}
	return all
}

func wants(t *testing.T, what string, got, want any) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func TestEventsArriveInOrderAndOneTargetDoesNotHoldUpAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, stuck, well := newRig(), newScript(always(hangs)...), newScript()
		r.Update([]Route{route("stuck", stuck), route("well", well)})
		began := time.Now()
		for _, text := range numbers(0, 100) {
			r.send("stuck", text)
			r.send("well", text)
			r.send("nobody", text)
		}
		wants(t, "time that sending took", time.Since(began), time.Duration(0))
		synctest.Wait()
		wants(t, "arrived", well.got(), numbers(0, 100))
		wants(t, "arrived at the one that hangs", stuck.got(), "[]")
		wants(t, "outcomes", r.outcomes(), "[well delivered:100]")
		r.end(0)
	})
}

func (r *rig) end(d time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	r.Close(ctx)
}

func TestADeliveryIsTriedAgainLaterAndLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, s := newRig(), newScript(slices.Repeat([]func(context.Context) error{fails}, 9)...)
		r.Update([]Route{route("ops", s)})
		r.send("ops", "a")
		time.Sleep(20 * time.Minute)
		wants(t, "arrived", s.got(), "[a]")
		tried := s.attempts()
		for i, want := range []float64{1, 2, 4, 8, 16, 32, 60, 60, 60} {
			pause := (tried[i+1] - tried[i]).Seconds()
			if pause < 0.8*want-0.001 || pause > 1.2*want+0.001 {
				t.Errorf("pause %d was %.2fs, want %.0fs, more or less by a fifth", i, pause, want)
			}
		}
		wants(t, "warnings", r.at(zap.WarnLevel, "tried again"), 1)
		wants(t, "lines that it is well again", r.at(zap.InfoLevel, "delivered again"), 1)
		r.end(0)
	})
}

func TestAnAttemptThatHangsEndsAndTheNextIsMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, s := newRig(), newScript(hangs)
		r.Update([]Route{route("ops", s)})
		r.send("ops", "a", "b")
		time.Sleep(12 * time.Second)
		wants(t, "arrived", s.got(), "[a b]")
		r.end(0)
	})
}

func TestADeliveryIsGivenUpInTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, s := newRig(), newScript(always(fails)...)
		r.Update([]Route{route("ops", s)})
		r.send("ops", "a")
		time.Sleep(30 * time.Minute)
		r.send("ops", "b", "c")
		time.Sleep(59 * time.Minute)
		wants(t, "outcomes after 89 minutes", r.outcomes(), "[ops given_up:1]")
		time.Sleep(10 * time.Minute)
		wants(t, "outcomes after 99 minutes", r.outcomes(), "[ops given_up:3]")
		if n := r.at(zap.ErrorLevel, "given up"); n < 1 || n > 3 {
			t.Errorf("%d lines of it", n)
		}
		// A target that does not answer is tried at most once per minute, regardless of the number of waiting events.
		tried := s.attempts()
		for i := 10; i < len(tried)-1; i++ {
			if pause := tried[i+1] - tried[i]; pause < 47*time.Second {
				t.Errorf("attempt %d came after %v", i+1, pause)
			}
		}
		r.end(0)
	})
}

// TestWhatHasWaitedLongIsTriedOnce checks that an event is tried once even if it has waited behind other events for longer than
// GiveUpAfter.
func TestWhatHasWaitedLongIsTriedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, s := newRig(), newScript()
		slow := route("ops", s)
		slow.Timeout, slow.GiveUpAfter = time.Hour, time.Minute
		s.do = []func(context.Context) error{func(context.Context) error { time.Sleep(30 * time.Minute); return nil }}
		r.Update([]Route{slow})
		r.send("ops", "a", "b")
		time.Sleep(31 * time.Minute)
		wants(t, "arrived", s.got(), "[a b]")
		r.end(0)
	})
}

func TestARefusedEventIsNotSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		no := func(context.Context) error { return service.Refused("the answer is 404") }
		r, s := newRig(), newScript(no, no, no)
		r.Update([]Route{route("ops", s)})
		r.send("ops", "a", "b")
		synctest.Wait()
		r.send("ops", "c", "d")
		synctest.Wait()
		wants(t, "arrived", s.got(), "[d]")
		wants(t, "outcomes", r.outcomes(), "[ops delivered:1 ops refused:3]")
		wants(t, "lines", r.at(zap.ErrorLevel, "refused"), 1)
		r.end(0)
	})
}

func TestAFullQueueLosesTheOldestAndSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, s := newRig(), newScript(fails)
		r.Update([]Route{route("ops", s)})
		r.send("ops", "first")
		synctest.Wait() // the event is being tried and no longer waits
		r.send("ops", numbers(0, queueMost+250)...)
		wants(t, "outcomes", r.outcomes(), fmt.Sprintf("[ops dropped:%d]", 250))
		wants(t, "lines", r.at(zap.ErrorLevel, "dropped"), 1)
		time.Sleep(2 * time.Minute)
		wants(t, "arrived", s.got(), append([]string{"first"}, numbers(250, queueMost+250)...))
		r.end(0)
	})
}

func TestOfSignsOfLifeOnlyTheLatestWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, s := newRig(), newScript(fails)
		ping := route("ping", s)
		ping.Latest = true
		r.Update([]Route{ping})
		r.send("ping", "a")
		synctest.Wait()
		r.send("ping", numbers(0, 50)...)
		time.Sleep(time.Minute)
		wants(t, "arrived", s.got(), "[a 49]")
		wants(t, "outcomes", r.outcomes(), "[ping delivered:2]")
		r.end(0)
	})
}

func TestWhatWaitsForATargetThatStaysIsDeliveredByTheNewOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, wrong, right := newRig(), newScript(always(fails)...), newScript()
		r.Update([]Route{route("ops", wrong), route("gone", wrong)})
		r.send("ops", "a", "b")
		r.send("gone", "c", "d", "e")
		time.Sleep(10 * time.Minute)
		r.Update([]Route{route("ops", right)})
		synctest.Wait() // immediately, although the pause is up to one minute
		wants(t, "arrived", right.got(), "[a b]")
		r.send("gone", "f")
		wants(t, "outcomes", r.outcomes(), "[gone dropped:3 ops delivered:2]")
		r.end(0)
	})
}

func TestClosingTriesWhatIsQueuedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, s := newRig(), newScript(slices.Repeat([]func(context.Context) error{fails}, 5)...)
		r.Update([]Route{route("ops", s)})
		r.send("ops", "a", "b")
		time.Sleep(10 * time.Second) // the next attempt is several seconds away
		began := time.Now()
		r.end(2 * time.Second)
		if took := time.Since(began); took > time.Second {
			t.Errorf("closing took %v", took)
		}
		wants(t, "arrived", s.got(), "[a b]")
		r.send("ops", "c")
		wants(t, "outcomes", r.outcomes(), "[ops delivered:2 ops dropped:1]")
	})
}

func TestClosingWaitsForNobodyForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, stuck, away := newRig(), newScript(always(hangs)...), newScript(always(fails)...)
		r.Update([]Route{route("stuck", stuck), route("away", away)})
		r.send("stuck", "a", "b")
		r.send("away", "c", "d")
		began := time.Now()
		r.end(2 * time.Second)
		wants(t, "time that closing took", time.Since(began), 2*time.Second)
		wants(t, "outcomes", r.outcomes(), "[away given_up:2 stuck given_up:2]")
		if n := len(away.attempts()); n < 8 || n > 14 {
			t.Errorf("%d attempts in the last two seconds", n)
		}
	})
}

func TestAnIdleDispatcherHasNoGoroutine(t *testing.T) {
	r, s := newRig(), newScript()
	before := runtime.NumGoroutine()
	for i := range 100 {
		r.lanes[strconv.Itoa(i)] = newLane(route(strconv.Itoa(i), s), r.log)
		r.send(strconv.Itoa(i), "a")
	}
	r.wg.Wait()
	after := runtime.NumGoroutine()
	for range 100 { // the last goroutines may be about to end
		if after <= before {
			break
		}
		time.Sleep(10 * time.Millisecond)
		after = runtime.NumGoroutine()
	}
	if after > before {
		t.Errorf("%d goroutines, %d before", after, before)
	}
	wants(t, "arrived", len(s.got()), 100)
}

func TestADispatcherMayBeUsedFromEverywhereAtOnce(t *testing.T) {
	r, s := newRig(), newScript()
	r.Update([]Route{route("0", s), route("1", s)})
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for range 200 {
				r.send(strconv.Itoa(i%2), "a")
			}
		})
		all.Go(func() {
			for range 100 {
				r.Update([]Route{route("0", s), route("1", s)})
			}
		})
	}
	all.Wait()
	r.end(time.Minute)
	wants(t, "arrived", len(s.got()), 800)
}
