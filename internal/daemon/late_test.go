package daemon

import (
	"testing"
	"time"
)

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
