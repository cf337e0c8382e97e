package web

import (
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"baton/internal/status/statustest"
)

func TestAnswersThatNobodyReadsTakeSoMuchMemoryAndNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ln, served := statustest.NewPipes(), make(chan error, 1)
		slots, answer := make(chan struct{}, 3), make([]byte, mostUnread/2)
		made := NewRequestLimiter(zap.NewNop())
		server := &http.Server{WriteTimeout: DefaultLimits().Write, Handler: made.Limit(slots,
			http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				_, _ = w.Write(answer)
			}))}
		go func() { served <- server.Serve(ln) }()
		for i, taken := range []int{0, 0, 1, 2, 3, 3} {
			ln.Send(t, "GET / HTTP/1.1\r\nHost: db1\r\n\r\n")
			if synctest.Wait(); len(slots) != taken {
				t.Errorf("after %d answers %d places are taken, want %d", i+1, len(slots), taken)
			}
		}
		time.Sleep(DefaultLimits().Write + time.Second)
		if unread := made.unread.Load(); len(slots) != 0 || unread != 0 {
			t.Errorf("they were let go, and hold %d places and %d bytes", len(slots), unread)
		}
		_ = server.Close()
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
}
