package web

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

func TestHandshakesThatFailDoNotFloodTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zapcore.InfoLevel)
		l := NewServerLog(zap.New(core))
		for range 60 {
			l.Print("http: TLS handshake error from 192.0.2.1:4711: EOF\n")
			time.Sleep(1100 * time.Millisecond)
		}
		if got := counts(logs); !slices.Equal(got, []int64{1, 54}) {
			t.Errorf("lines tell of %d handshakes", got)
		}
		time.Sleep(repeatAfter)
		if got := counts(logs); !slices.Equal(got, []int64{5}) {
			t.Errorf("when it is over a line tells of %d handshakes", got)
		}
		time.Sleep(2 * repeatAfter)
		l.Print("http: TLS handshake error from 192.0.2.1:4711: EOF\n")
		if got := counts(logs); !slices.Equal(got, []int64{1}) {
			t.Errorf("the next one is told as %d", got)
		}
		l.Print("http: Accept error: too many open files; retrying in 5ms")
		l.Print("http: panic serving")
		if got := logs.FilterLevelExact(zapcore.WarnLevel).Len(); got != 2 {
			t.Errorf("%d other lines", got)
		}
	})
}

// counts returns the counts in the log lines since the last call.
func counts(logs *observer.ObservedLogs) (all []int64) {
	for _, line := range logs.TakeAll() {
		count, _ := line.ContextMap()["count"].(int64)
		all = append(all, count)
	}
	return all
}
