package alert

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"baton/internal/config"
	"baton/internal/elector"
	"baton/internal/job"
	"baton/internal/notify"
	"baton/internal/redisledger"
	"baton/internal/redislock"
	"baton/internal/status/metrics"
)

// listener is a target that stores the events that it gets.
type listener struct {
	mu     sync.Mutex
	events []notify.Event
}

func (l *listener) Send(_ context.Context, e notify.Event) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, e)
	return nil
}

// take returns the events since the last call.
func (l *listener) take() []notify.Event {
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.events
	l.events = nil
	return all
}

// told returns the events since the last call in a short form: the kind and the job.
func (l *listener) told() string {
	var words []string
	for _, e := range l.take() {
		words = append(words, strings.TrimSpace(string(e.Kind)+" "+e.Job))
	}
	return strings.Join(words, ", ")
}

// past is the content of the ledger and of the election's history.
type past struct {
	mu     sync.Mutex
	states map[string]redisledger.JobState
	events []redislock.Event
	err    error
}

func (p *past) Jobs(_ context.Context, names []string) ([]redisledger.JobState, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return nil, p.err
	}
	list := make([]redisledger.JobState, len(names))
	for i, name := range names {
		list[i] = p.states[name]
		list[i].Job = name
	}
	return list, nil
}

func (p *past) State(context.Context, int) (redislock.ElectionState, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return redislock.ElectionState{Events: p.events}, p.err
}

// set changes the job's state in the ledger. If err is not nil, the ledger returns err instead.
func (p *past) set(st redisledger.JobState, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.states["users"], p.err = st, err
}

// notesRig is the notifications of a leader with one target, which gets all events.
type notesRig struct {
	*Notifications
	*listener
	past *past
	t    *testing.T
}

func noteConfig(jobs ...config.Job) config.Config {
	return config.Config{
		Node: config.Node{ID: "n1"}, Jobs: jobs, Notify: []config.Notify{{Name: "ops", Command: config.Command{"true"}}},
	}.WithDefaults()
}

func users() config.Job {
	return config.Job{Name: "users", Schedule: "@every 10m", Command: config.Command{"true"}}
}

func newNotesRig(t *testing.T, c config.Config) *notesRig {
	r := &notesRig{listener: &listener{}, past: &past{states: map[string]redisledger.JobState{}}, t: t}
	r.Notifications = New(c, func() (string, error) { return "id", nil }, zap.NewNop(), metrics.New("v", nil))
	r.listen()
	return r
}

// listen replaces all targets of the configuration with the listener.
func (r *notesRig) listen() {
	var routes []notify.Route
	for _, a := range r.targets {
		routes = append(routes, notify.Route{Name: a.name, Target: r.listener, Timeout: time.Second, GiveUpAfter: time.Minute})
	}
	for name, j := range r.jobs {
		if j.ping {
			routes = append(routes, notify.Route{Name: pingName(name), Target: r.listener, Timeout: time.Second, GiveUpAfter: time.Minute})
		}
	}
	r.dispatch.Update(routes)
}

// leads begins a term, and returns a function that ends the term.
func (r *notesRig) leads() (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	follow := r.Begin("baton", 7, r.past, r.past)
	done := make(chan struct{})
	go func() { defer close(done); follow(ctx) }()
	synctest.Wait()
	return func() { cancel(); <-done }
}

// during runs a test in one term of a leader with the jobs of c, with a fake clock.
func during(t *testing.T, c config.Config, test func(r *notesRig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := newNotesRig(t, c)
		end := r.leads()
		test(r)
		end()
		r.Close(t.Context())
	})
}

func (r *notesRig) want(when, want string) {
	r.t.Helper()
	if got := r.told(); got != want {
		r.t.Errorf("%s: told %q, want %q", when, got, want)
	}
}

// runs reports the end of a run. By default the run is for a slot at the current time.
func (r *notesRig) runs(s job.State, change ...func(*job.Record)) {
	now := time.Now()
	rec := job.Record{
		Run: job.Run{ID: "run", Job: "users", Slot: now.Truncate(time.Second), Trigger: job.TriggerSchedule, Attempt: 1,
			Term: job.Term{NodeID: "n1", Owner: "o", Epoch: 7}},
		State: s, Started: now, Finished: now,
	}
	if s == job.StateFailed {
		rec.Error = "exit code 3"
	}
	for _, c := range change {
		c(&rec)
	}
	r.Finished(rec)
}

// ofSlot changes a run into an attempt of a slot. If again is positive, the attempt is retried after that time.
func ofSlot(slot time.Time, attempt int, again time.Duration) func(*job.Record) {
	return func(rec *job.Record) {
		rec.Slot, rec.Attempt = slot, attempt
		if again > 0 {
			rec.RetryAt = time.Now().Add(again)
		}
	}
}

func TestAFailureInARowIsToldOnceAnHourAndRecoveryOnce(t *testing.T) {
	during(t, noteConfig(users()), func(r *notesRig) {
		r.runs(job.StateSucceeded)
		r.want("a success", "")
		for i := range 18 { // three hours
			r.runs([]job.State{job.StateFailed, job.StateTimedOut, job.StateLost}[i%3])
			time.Sleep(10 * time.Minute)
		}
		r.want("three hours of failures", "failed users, failed users, failed users")
		r.runs(job.StateSucceeded)
		r.runs(job.StateSucceeded)
		r.want("two successes", "recovered users")
		r.runs(job.StateFailed)
		r.runs(job.StateFailed)
		r.want("another failure, soon after", "failed users")
	})
}

func TestWhatAnEventSays(t *testing.T) {
	during(t, noteConfig(users()), func(r *notesRig) {
		code := 3
		r.runs(job.StateFailed, func(rec *job.Record) { rec.Result.ExitCode = &code })
		e := r.take()[0]
		if e.ID == "" || e.At.IsZero() || e.Slot.IsZero() || e.ExitCode == nil || *e.ExitCode != 3 {
			t.Errorf("%+v", e)
		}
		e.ID, e.At, e.Slot, e.ExitCode = "", time.Time{}, time.Time{}, nil
		want := notify.Event{
			Kind: notify.Failed, NodeID: "n1", LockKey: "baton", Epoch: 7, Job: "users", RunID: "run", Attempt: 1, Trigger: "schedule",
			State: "failed", Error: "exit code 3", ConsecutiveFailures: 1, Text: "Job users failed on n1: exit code 3",
		}
		if e != want {
			t.Errorf("%+v, want %+v", e, want)
		}
		for range 11 {
			r.runs(job.StateFailed)
		}
		time.Sleep(time.Hour)
		r.runs(job.StateFailed, func(rec *job.Record) { rec.Pauses, rec.Error = true, "no\ntable" })
		e = r.take()[0]
		if e.Reason != "paused" || e.Text != "Job users failed on n1, the 13th time in a row, and is paused until an operator resumes it: no table" {
			t.Errorf("%+v", e)
		}
		r.runs(job.StateSucceeded)
		if e = r.take()[0]; e.Text != "Job users is well again after 13 failures in a row" || e.ConsecutiveFailures != 13 {
			t.Errorf("%+v", e)
		}
	})
}

// TestTheNextLeaderKnowsWhatWasTold checks that a new leader continues the reports where the last leader has stopped.
func TestTheNextLeaderKnowsWhatWasTold(t *testing.T) {
	failed := &job.Record{Run: job.Run{ID: "old"}, State: job.StateFailed}
	ended := redislock.Event{Event: "stepped_down", NodeID: "n2"}
	for _, c := range []struct {
		what   string
		state  redisledger.JobState
		ended  redislock.Event
		states []job.State
		want   string
	}{
		{"it was well", redisledger.JobState{}, ended, []job.State{job.StateFailed, job.StateSucceeded}, "failed users, recovered users"},
		{"it had failed", redisledger.JobState{ConsecutiveFailures: 2, Last: failed}, ended, []job.State{job.StateFailed}, ""},
		{"it had failed and succeeds", redisledger.JobState{ConsecutiveFailures: 2, Last: failed}, ended, []job.State{job.StateSucceeded}, "recovered users"},
		{"it had failed, and the leader crashed", redisledger.JobState{ConsecutiveFailures: 2, Last: failed}, redislock.Event{Event: "won", NodeID: "n2"},
			[]job.State{job.StateFailed, job.StateFailed, job.StateSucceeded}, "failed users, recovered users"},
		{"it was to be tried again", redisledger.JobState{ConsecutiveFailures: 1, Last: failed, Retry: &job.Retrial{Attempt: 2}}, ended,
			[]job.State{job.StateSucceeded}, ""},
		{"it was to be tried again and fails", redisledger.JobState{ConsecutiveFailures: 1, Last: failed, Retry: &job.Retrial{Attempt: 2}}, ended,
			[]job.State{job.StateFailed, job.StateSucceeded}, "failed users, recovered users"},
		{"it had failed before, and was to be tried again", redisledger.JobState{ConsecutiveFailures: 4, Last: failed, Retry: &job.Retrial{Attempt: 2}}, ended,
			[]job.State{job.StateFailed, job.StateSucceeded}, "recovered users"},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newNotesRig(t, noteConfig(users()))
			r.past.states["users"] = c.state
			r.past.events = []redislock.Event{{Event: "won", NodeID: "n1"}, c.ended}
			end := r.leads()
			r.take() // the event that the leader has changed
			for _, s := range c.states {
				r.runs(s)
			}
			r.want(c.what, c.want)
			end()
			r.Close(t.Context())
		})
	}
}

func TestALeaderThatChangedIsToldByTheNewOne(t *testing.T) {
	now := time.Now()
	event := func(kind, node string) redislock.Event { return redislock.Event{At: now, Event: kind, NodeID: node} }
	won := event("won", "n1")
	for _, c := range []struct {
		what   string
		events []redislock.Event
		from   string
		why    string
	}{
		{"the first term", []redislock.Event{won}, "", ""},
		{"the first term, after a pause", []redislock.Event{won, event("resumed", ""), event("paused", "")}, "", ""},
		{"no history", nil, "", ""},
		{"a step-down", []redislock.Event{won, event("stepped_down", "n2"), event("won", "n2")}, "n2", "stepped_down"},
		{"a shutdown, a pause", []redislock.Event{won, event("resumed", ""), event("released", "n3"), event("won", "n3"), event("lost", "n2")}, "n3", "released"},
		{"a crash", []redislock.Event{won, event("won", "n2"), event("released", "n3")}, "n2", "crashed"},
		{"a crash, noted by its successor", []redislock.Event{won, {Event: "expired", NodeID: "n2", Code: elector.CodeLeaseEnded}, event("won", "n2")}, "n2", "crashed"},
		{"a crash, noted by systemd", []redislock.Event{won, {Event: "released", NodeID: "n2", Code: elector.CodeCrashed}, event("won", "n2")}, "n2", "crashed"},
		{"a crash and a quarantine", []redislock.Event{won, event("quarantined", "n1"), event("won", "n2")}, "n2", "crashed"},
		{"one that told late", []redislock.Event{event("expired", "n2"), won, event("won", "n2")}, "n2", "expired"},
		{"the same node again", []redislock.Event{won, event("expired", "n1")}, "n1", "expired"},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newNotesRig(t, noteConfig(users()))
			r.past.events = c.events
			end := r.leads()
			var from, why string
			for _, e := range r.take() {
				if e.Kind != notify.LeaderChanged || e.Epoch != 7 || e.LockKey != "baton" || e.NodeID != "n1" || e.Text == "" {
					t.Errorf("%s: %+v", c.what, e)
				}
				from, why = e.From, e.Reason
			}
			if from != c.from || why != c.why {
				t.Errorf("%s: from %q, %q", c.what, from, why)
			}
			time.Sleep(time.Minute)
			r.want(c.what+", later", "")
			end()
			r.Close(t.Context())
		})
	}
}

func TestATargetHearsOfWhatItWantsTo(t *testing.T) {
	mails := config.Job{Name: "mails", Schedule: "@hourly", Command: config.Command{"true"}, Lock: "other"}
	c := noteConfig(users(), mails)
	c.Notify = []config.Notify{
		{Name: "all", On: config.NotifyEvents()},
		{Name: "failures", On: []string{"failed"}},
		{Name: "mails", On: config.NotifyEvents(), Jobs: []string{"mails"}},
	}
	during(t, c, func(r *notesRig) {
		names := map[string]*listener{}
		var routes []notify.Route
		for _, a := range r.targets {
			names[a.name] = &listener{}
			routes = append(routes, notify.Route{Name: a.name, Target: names[a.name], Timeout: time.Second, GiveUpAfter: time.Minute})
		}
		r.dispatch.Update(routes)
		r.runs(job.StateFailed)
		r.runs(job.StateSucceeded)
		r.won("baton", 1, "n2", "lost")
		r.won("other", 1, "n2", "lost")
		for name, want := range map[string]string{
			"all":      "failed users, recovered users, leader_changed, leader_changed",
			"failures": "failed users",
			"mails":    "leader_changed",
		} {
			if got := names[name].told(); got != want {
				t.Errorf("%s: %s", name, got)
			}
		}
	})
}

func TestADeadMansSwitchHearsOfEverySuccess(t *testing.T) {
	u := users()
	u.DeadMansSwitch = &config.Webhook{URL: "http://127.0.0.1:1/"}
	c := noteConfig(u)
	c.Notify = nil
	during(t, c, func(r *notesRig) {
		for _, s := range []job.State{job.StateSucceeded, job.StateFailed, job.StateSucceeded, job.StateCancelled} {
			r.runs(s)
			synctest.Wait()
		}
		if n := len(r.take()); n != 2 {
			t.Errorf("%d signs of life, want 2", n)
		}
	})
}

func TestAReloadKeepsWhatIsKnownOfJobs(t *testing.T) {
	during(t, noteConfig(users()), func(r *notesRig) {
		r.runs(job.StateFailed)
		u := users()
		u.LateAfter = time.Minute
		r.Reload(noteConfig(u, config.Job{Name: "new", Schedule: "@hourly", Command: config.Command{"true"}}))
		r.listen()
		r.runs(job.StateFailed)
		r.want("the same failure", "failed users")
		r.runs(job.StateSucceeded)
		r.want("a success", "recovered users")
		r.runs(job.StateFailed, func(rec *job.Record) { rec.Job = "new" })
		time.Sleep(lateEvery)
		r.want("a new job", "failed new")

		moved := users()
		moved.Lock = "other"
		r.Reload(noteConfig(moved))
		r.runs(job.StateFailed)
		time.Sleep(lateEvery)
		r.want("a job that is under another lock, whose leader is another", "")
	})
}

// TestNotificationsMayBeToldFromEverywhere checks that all methods can be called at the same time, and that no call waits.
func TestNotificationsMayBeToldFromEverywhere(t *testing.T) {
	r := newNotesRig(t, noteConfig(users()))
	ctx, cancel := context.WithCancel(t.Context())
	follow := r.Begin("baton", 7, r.past, r.past)
	var all sync.WaitGroup
	all.Go(func() { follow(ctx) })
	for range 3 {
		all.Go(func() {
			for i := range 100 {
				r.runs([]job.State{job.StateFailed, job.StateSucceeded}[i%2])
				r.Missed(job.Missed{Job: "users", Reason: job.ReasonLate, Count: 1})
				r.Lagged("users", time.Second)
				r.LettersPut("users", 1)
				r.LettersWait("users", int64(i%2), time.Now())
				r.won("baton", 8, "n2", "lost")
			}
		})
	}
	all.Go(func() {
		for range 50 {
			r.Reload(noteConfig(users()))
			r.Notifications.mu.Lock()
			r.listen()
			r.Notifications.mu.Unlock()
		}
	})
	cancel()
	all.Wait()
	r.Close(t.Context())
}

func TestTheKindsOfEventsAreThoseOfTheConfiguration(t *testing.T) {
	kinds := []string{string(notify.Failed), string(notify.Recovered), string(notify.Missed), string(notify.Late), string(notify.DeadLetters), string(notify.LeaderChanged)}
	if !slices.Equal(kinds, config.NotifyEvents()) {
		t.Errorf("%v and %v", kinds, config.NotifyEvents())
	}
}
