package status

import (
	"fmt"
	"net/http"
	"time"

	"go.uber.org/zap"
)

// aliveEvery is how often a stream says that it is there.
const aliveEvery = 15 * time.Second

// serveStream tells the Snapshot again whenever it has changed, as server-sent events.
func (s *Server) serveStream(w http.ResponseWriter, r *http.Request) {
	updates, leave, ok := s.live.subscribe()
	if !ok {
		s.refuse(w, r, &refusal{http.StatusServiceUnavailable, fmt.Sprintf("%d streams are open, and that is all: ask %s/status now and then instead", maxStreams, apiRoot)})
		return
	}
	defer leave()
	out := newEventStream(w, s.limits.take)
	if r.Method == http.MethodHead || out.comment("baton") != nil {
		return
	}
	alive := time.NewTicker(aliveEvery)
	defer alive.Stop()
	for told := uint64(0); ; {
		var err error
		select {
		case <-r.Context().Done():
			return
		case <-alive.C:
			err = out.comment("still there")
		case u, open := <-updates:
			if !open || !s.auth.holds(r) {
				return
			}
			if u.Revision == told {
				continue
			}
			told = u.Revision
			body := u.public
			if s.auth.maySee(r) {
				body = u.full
			}
			err = out.event("status", fmt.Sprint(told), body)
		}
		if err != nil {
			s.cfg.Logger.Debug("a stream has ended", zap.Error(err))
			return
		}
	}
}

// eventStream writes server-sent events. Whoever does not take them in time is let go.
type eventStream struct {
	w http.ResponseWriter
	c *http.ResponseController

	within time.Duration // what whoever reads it gets to take what is told
}

// newEventStream takes the server's limits off a request, which are for pages.
func newEventStream(w http.ResponseWriter, within time.Duration) *eventStream {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // a proxy shall pass on what it gets
	e := &eventStream{w: w, c: http.NewResponseController(w), within: within}
	_ = e.c.SetReadDeadline(time.Time{}) // a recorder of a test has none
	return e
}

func (e *eventStream) comment(text string) error {
	return e.send([]byte(": " + text + "\n\n"))
}

// event sends one; its data must be one line.
func (e *eventStream) event(name, id string, data []byte) error {
	return e.send(fmt.Appendf(nil, "event: %s\nid: %s\ndata: %s\n\n", name, id, data))
}

func (e *eventStream) send(text []byte) error {
	_ = e.c.SetWriteDeadline(time.Now().Add(e.within))
	if _, err := e.w.Write(text); err != nil {
		return err
	}
	return e.c.Flush()
}
