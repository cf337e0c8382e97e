package daemon

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"baton/internal/config"
	"baton/internal/daemon/work"
)

// A run that never ends reports its dead letters, and all nodes report how many dead letters wait.
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
		text, _ := os.ReadFile(told) // there is no notification yet
		return strings.Contains(string(text), `"event":"dead_letters"`) && strings.Contains(string(text), `"job":"views","count":1`)
	})
	// The next count follows within half a minute, and a standby reads the count every half minute.
	within := func(what string, reached func() bool) {
		t.Helper()
		for deadline := time.Now().Add(4 * work.LettersEvery); !reached(); time.Sleep(50 * time.Millisecond) {
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
	await(t, "no node leads", func() bool { return leader.metric(`baton_leader{lock="baton"}`) == "0" })
	if a, b := leader.metric(gauge), standby.metric(gauge); a != "1" || b != "1" {
		t.Errorf("while no node leads the nodes tell of %s and %s", a, b)
	}
}
