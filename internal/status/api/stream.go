package api

import (
	"fmt"
	"net/http"
	"time"

	"go.uber.org/zap"

	"baton/internal/status/state"
	"baton/internal/status/web"
)

// aliveEvery is how often a stream says that it is there.
const aliveEvery = 15 * time.Second

// serveStream tells the Snapshot again whenever it has changed, as server-sent events.
func (a *API) serveStream(w http.ResponseWriter, r *http.Request) {
	updates, leave, ok := a.Watch.Live.Subscribe()
	if !ok {
		a.Refuse(w, r, web.Refuse(http.StatusServiceUnavailable, fmt.Sprintf("%d streams are open, and that is all: ask %s/status now and then instead", state.MaxStreams, Root)))
		return
	}
	defer leave()
	out := web.NewEventStream(w)
	if r.Method == http.MethodHead || out.Comment("baton") != nil {
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
			err = out.Comment("still there")
		case u, open := <-updates:
			if !open || !a.Auth.Holds(r) {
				return
			}
			if u.Revision == told {
				continue
			}
			told = u.Revision
			body := u.Public
			if a.Auth.MaySee(r) {
				body = u.Full
			}
			err = out.Event("status", fmt.Sprint(told), body)
		}
		if err != nil {
			a.Log.Debug("a stream has ended", zap.Error(err))
			return
		}
	}
}
