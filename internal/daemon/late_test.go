package daemon

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"baton/internal/config"
)

// Only a run compares a total with its watermark. Between runs the changes cannot be counted, and 0 would mean that no changes wait.
func TestAWatermarkJobThatHasNotRunDoesNotCountNothing(t *testing.T) {
	t.Parallel()
	l := newJobLab(t)
	l.job("views", "0 0 29 2 *")
	l.config.Jobs[0].Flush.From.Mode = config.ModeWatermark
	l.do("HSET", "views", "1", "10")
	l.do("HSET", "{baton}:job:views", "begun", time.Now().Add(-time.Hour).UnixMilli())
	r := l.start()
	j := l.state("views")
	if j.Backlog != nil || !strings.Contains(j.BacklogUnknown, "only a run finds what has changed") {
		t.Errorf("%v changes wait, unknown because %q; 1 does, and nobody has counted", j.Backlog, j.BacklogUnknown)
	}
	if j.LagSeconds == nil || *j.LagSeconds < 3600 {
		t.Errorf("it is behind %v s; its first run was due an hour ago", j.LagSeconds)
	}
	await(t, "a lag without a backlog", func() bool {
		lag, err := strconv.ParseFloat(r.metric(`baton_flush_lag_seconds{job="views"}`), 64)
		return err == nil && lag >= 3600 && r.metric(`baton_flush_backlog{job="views"}`) == ""
	})
}

func TestAFlushThatNeverEndedWellIsCalledLate(t *testing.T) {
	t.Parallel()
	l := newJobLab(t)
	l.job("views", "0 0 29 2 *")
	l.do("HSET", "views", "1", "10")
	l.do("HSET", "{baton}:job:views", "consecutive_failures", "16", "begun", time.Now().Add(-time.Hour).UnixMilli())
	l.start()
	if j := l.state("views"); j.LagSeconds == nil || *j.LagSeconds < 3600 {
		t.Errorf("it is behind %v s", j.LagSeconds)
	}
}
