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
func (a *api) serveStream(w http.ResponseWriter, r *http.Request) {
	updates, leave, ok := a.watch.live.subscribe()
	if !ok {
		a.refuse(w, r, &refusal{http.StatusServiceUnavailable, fmt.Sprintf("%d streams are open, and that is all: ask %s/status now and then instead", maxStreams, apiRoot)})
		return
	}
	defer leave()
	out := newEventStream(w)
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
			if !open || !a.auth.holds(r) {
				return
			}
			if u.Revision == told {
				continue
			}
			told = u.Revision
			body := u.public
			if a.auth.maySee(r) {
				body = u.full
			}
			err = out.event("status", fmt.Sprint(told), body)
		}
		if err != nil {
			a.log.Debug("a stream has ended", zap.Error(err))
			return
		}
	}
}
