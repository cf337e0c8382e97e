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
