package work

import (
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	recorder "go.uber.org/zap/zaptest/observer"
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
