package status

import (
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
		l := newServerLog(zap.New(core))
		for range 100 {
			l.Print("http: TLS handshake error from 192.0.2.1:4711: EOF\n")
			time.Sleep(time.Second)
		}
		if got := logs.TakeAll(); len(got) != 2 || got[1].ContextMap()["untold"] != int64(59) || got[0].Message != "http: TLS handshake error from 192.0.2.1:4711: EOF" {
			t.Errorf("%v", got)
		}
		l.Print("http: Accept error: too many open files; retrying in 5ms")
		l.Print("http: panic serving")
		if got := logs.FilterLevelExact(zapcore.WarnLevel).Len(); got != 2 {
			t.Errorf("%d other lines", got)
		}
	})
}
