package daemon

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	recorder "go.uber.org/zap/zaptest/observer"

	"baton/internal/config"
	"baton/internal/redisledger"
	"baton/internal/redislock"
)

func TestTheLogTellsOfDeadLettersOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := recorder.New(zapcore.InfoLevel)
		l := &lettersLog{log: zap.New(core), job: "views"}
		counts := func() (all []any) {
			synctest.Wait()
			for _, e := range logs.TakeAll() {
				all = append(all, e.ContextMap()["dead"])
			}
			return all
		}
		want := func(when string, want ...any) {
			t.Helper()
			if got := counts(); len(got) != len(want) || len(want) > 0 && got[0] != want[0] {
				t.Errorf("%s: lines with the counts %v, want %v", when, got, want)
			}
		}
		l.add(3)
		want("the first", int64(3))
		for range 10 {
			l.add(2)
		}
		time.Sleep(lettersLogged - time.Second)
		want("within the minute")
		time.Sleep(2 * time.Second)
		want("what came since", int64(20))
		time.Sleep(time.Hour)
		want("nothing more")
		l.add(1)
		want("another one", int64(1))
		time.Sleep(2 * lettersLogged)
	})
}

func TestDeadLettersAreToldWhenTheyBeginAndOnceAnHour(t *testing.T) {
	during(t, noteConfig(users()), func(r *notesRig) {
		put := func(n int64) { r.lettersPut("users", n) }
		count := func(want int) {
			t.Helper()
			if all := r.take(); len(all) != 1 || all[0].Kind != "dead_letters" || all[0].Count != want || all[0].Job != "users" || all[0].LockKey != "baton" || all[0].Epoch != 7 {
				t.Errorf("told %+v, want %d dead letters", all, want)
			}
		}
		put(2)
		count(2)
		for range 6 {
			time.Sleep(9 * time.Minute)
			put(1)
		}
		r.want("more within the hour", "")
		time.Sleep(7 * time.Minute)
		r.want("nothing has been counted since", "")
		r.lettersWait("users", 8, time.Now())
		count(6)
		put(1)
		r.lettersWait("users", 0, time.Now().Add(-time.Second))
		put(1)
		r.want("nobody has seen to the last one: it was put aside after the counting", "")
		time.Sleep(time.Second)
		r.lettersWait("users", 0, time.Now())
		r.want("they have been seen to", "")
		put(5)
		count(5)
		put(1)
		r.reload(noteConfig(users()))
		r.listen()
		put(1)
		r.want("after a reload", "")
	})
}

func TestTheNextLeaderKnowsThatDeadLettersWereTold(t *testing.T) {
	five, none := int64(5), int64(0)
	for _, c := range []struct {
		what   string
		before *int64
		ended  redislock.Event
		want   string
	}{
		{"some waited", &five, redislock.Event{Event: "stepped_down", NodeID: "n2"}, ""},
		{"none waited", &none, redislock.Event{Event: "stepped_down", NodeID: "n2"}, "dead_letters users"},
		{"nobody has counted them", nil, redislock.Event{Event: "stepped_down", NodeID: "n2"}, "dead_letters users"},
		{"some waited, and the leader crashed", &five, redislock.Event{Event: "won", NodeID: "n2"}, "dead_letters users"},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newNotesRig(t, noteConfig(users()))
			r.past.states["users"] = redisledger.JobState{DeadLetters: c.before}
			r.past.events = []redislock.Event{{Event: "won", NodeID: "n1"}, c.ended}
			end := r.leads()
			r.take() // that the leader changed
			r.lettersPut("users", 1)
			r.lettersWait("users", 6, time.Now())
			r.want(c.what, c.want)
			end()
			r.close(t.Context())
		})
	}
}

// A run that never ends tells of what it puts aside, and all nodes how much waits.
func TestDeadLettersOfARunThatGoesOnAreTold(t *testing.T) {
	t.Parallel()
	l := newJobLab(t)
	l.job("views", "@always")
	told := filepath.Join(t.TempDir(), "told")
	l.config.Notify = []config.Notify{{Name: "ops", On: []string{config.NotifyDeadLetters}, Command: config.Command{"sh", "-c", "cat >> " + told}}}
	leader := l.start()
	other := l.config
	other.Node.ID = "b"
	standby := start(t, other, nil)
	l.do("HSET", "views", "1", 10, "no number", 7)
	l.awaitRows("[[1 10]]")
	await(t, "a line of the log", func() bool {
		return leader.logs.FilterMessageSnippet("records were put aside as dead letters").FilterField(zap.String("job", "views")).Len() == 1
	})
	await(t, "an event", func() bool {
		text, _ := os.ReadFile(told) // there is none yet
		return strings.Contains(string(text), `"event":"dead_letters"`) && strings.Contains(string(text), `"job":"views","count":1`)
	})
	// The next count is half a minute later at most, and a standby looks every half minute.
	within := func(what string, reached func() bool) {
		t.Helper()
		for deadline := time.Now().Add(4 * lettersEvery); !reached(); time.Sleep(50 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("waited in vain for %s", what)
			}
		}
	}
	const gauge = `baton_dead_letters{job="views"}`
	within("the gauges", func() bool { return leader.metric(gauge) == "1" && standby.metric(gauge) == "1" })
	if j := l.state("views"); j.LastRun != nil || j.DeadLetters == nil || *j.DeadLetters != 1 {
		t.Errorf("the state of the job: %+v", j)
	}
	l.server.Kill()
	await(t, "nobody leads", func() bool { return leader.metric(`baton_leader{lock="baton"}`) == "0" })
	if a, b := leader.metric(gauge), standby.metric(gauge); a != "1" || b != "1" {
		t.Errorf("while nobody leads the nodes tell of %s and %s", a, b)
	}
}
