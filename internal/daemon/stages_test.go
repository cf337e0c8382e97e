package daemon

import (
	"fmt"
	"strings"
	"testing"

	"go.uber.org/zap"

	"baton/internal/diagnose"
	"baton/internal/doctor"
)

// A job's key changes while changes are staged. All nodes and commands report this until a job has the old key again.
func TestWhatAJobLeavesStagedIsNamedAndFlushedOrDropped(t *testing.T) {
	t.Parallel()
	l := newJobLab(t)
	l.job("views", "@every 200ms")
	l.config.Jobs[0].Flush.DeadLetters.PerBatch = 1
	r := l.start()
	l.do("HSET", "views", "1", 10, "no number", 20, "none", 30) // too many records do not fit, so all of them stay staged
	await(t, "the pause", func() bool { return l.state("views").Paused != nil })
	if left, err := l.remote.to.LeftStages(t.Context()); err != nil || len(left) != 0 {
		t.Errorf("a stage that is flushed is called left: %+v, %v", left, err)
	}
	if err := l.remote.to.DropStage(t.Context(), diagnose.LeftStage{Key: "views"}); err == nil || !strings.Contains(err.Error(), `job "views" flushes "views"`) {
		t.Errorf("dropping what a job flushes: %v", err)
	}
	r.endsWell()

	l.config.Jobs[0].Flush.From.Key = "other"
	r = l.start()
	await(t, "a line of the log", func() bool {
		return r.logs.FilterMessageSnippet("changes are staged that no job flushes").FilterField(zap.String("key", "views")).FilterField(zap.Int64("changes", 3)).Len() == 1
	})
	s, err := l.remote.to.Snapshot(t.Context())
	if err != nil || len(s.LeftStages) != 1 || s.LeftStages[0].Key != "views" || s.LeftStages[0].Job != "views" || s.LeftStages[0].Records != 3 || s.LeftStages[0].BatchID == "" {
		t.Fatalf("the state: %+v, %v", s.LeftStages, err)
	}
	if page := r.read("/"); !strings.Contains(page, "3 changes of views no job flushes") {
		t.Error("the page does not tell of it")
	}
	found := fmt.Sprint(doctor.Examine(t.Context(), l.config, doctor.Options{}))
	if !strings.Contains(found, `changes are staged that no job flushes: 3 beside "views", by job "views"`) {
		t.Errorf("doctor: %s", found)
	}
	// A client whose configuration differs from the nodes' configuration is not trusted.
	without := l.config
	without.Jobs = nil
	if err := overServers(t, without).to.DropStage(t.Context(), s.LeftStages[0]); err == nil || !strings.Contains(err.Error(), "runs with other jobs") {
		t.Errorf("dropping by another configuration: %v", err)
	}
	changed := s.LeftStages[0]
	changed.BatchID = "another"
	if err := l.remote.to.DropStage(t.Context(), changed); err == nil || !strings.Contains(err.Error(), "no longer exists") {
		t.Errorf("dropping another batch: %v", err)
	}
	if n, _ := l.conn.Do("HLEN", "{views}:baton:stage"); n != int64(3) {
		t.Errorf("%v of 3 are left", n)
	}
	_ = r.end()

	l.config.Jobs[0].Flush.From.Key = "views"
	l.config.Jobs[0].Name = "another-name"
	l.config.Jobs[0].Flush.DeadLetters.PerBatch = 5
	r = l.start()
	l.awaitRows("[[1 10]]")
	if s, err := l.remote.to.Snapshot(t.Context()); err != nil || len(s.LeftStages) != 0 {
		t.Errorf("after the flush: %+v, %v", s.LeftStages, err)
	}
	_ = r.end()
}

func TestADroppedStageIsGoneAndForgotten(t *testing.T) {
	t.Parallel()
	l := newJobLab(t)
	l.do("HSET", "{baton}:stages", "old", "users", "hits", "hits", "done", "users")
	l.do("HSET", "{old}:baton:meta", "id", "batch", "job", "users", "parts", 0)
	l.do("SADD", "{old}:baton:stage", "1", "2", "3")
	l.do("HSET", "{hits}:baton:stage", "1", 5) // of counters with a key each, half collected
	l.do("SADD", "{hits}:baton:index", "2")
	l.job("views", "@hourly")
	r := l.start()
	left, err := l.remote.to.LeftStages(t.Context())
	if err != nil || fmt.Sprint(left) != "[{ hits hits  2} { old users batch 3}]" {
		t.Fatalf("left: %v, %v", left, err)
	}
	for _, s := range left {
		if err := l.remote.to.DropStage(t.Context(), s); err != nil {
			t.Error(err)
		}
	}
	if n, _ := l.conn.Do("EXISTS", "{old}:baton:meta", "{old}:baton:stage", "{hits}:baton:stage", "{hits}:baton:index"); n != int64(0) {
		t.Errorf("%v keys are left", n)
	}
	await(t, "the list to have the job that there is", func() bool {
		n, _ := l.conn.Do("HLEN", "{baton}:stages")
		at, _ := l.conn.Do("HGET", "{baton}:stages", "views")
		return n == int64(2) && fmt.Sprintf("%s", at) == "views" // its edition is the other field
	})
	_ = r.end()
}
