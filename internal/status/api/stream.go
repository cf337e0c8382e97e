package api

import (
	"fmt"
	"net/http"
	"time"

	"go.uber.org/zap"

	"baton/internal/status/state"
	"baton/internal/status/web"
)

// aliveEvery is the interval between two keep-alive messages on a stream.
const aliveEvery = 15 * time.Second

// serveStream sends the Snapshot after each change, as server-sent events.
func (a *API) serveStream(w http.ResponseWriter, r *http.Request) {
	updates, leave, ok := a.Watch.Subscribe()
	if !ok {
		a.Refuse(w, r, web.Refuse(http.StatusServiceUnavailable,
			fmt.Sprintf("%d streams are open, and no more are allowed: request %s/status from time to time "+
				"instead", state.MaxStreams, Root)))
		return
	}
	defer leave()
	if r.Method == http.MethodHead {
		web.NewEventStream(w)
		return
	}
	told := uint64(0)
	err := web.Follow(w, r, updates, aliveEvery, func(u *state.Update, isNew bool) ([]byte, bool) {
		switch {
		case !isNew:
			return []byte(": still there\n\n"), a.Auth.Holds(r)
		case u.Revision == told:
			return nil, a.Auth.Holds(r)
		}
		told = u.Revision
		body := u.Public
		if a.Auth.MaySee(r) {
			body = u.Full
		}
		return fmt.Appendf(nil, "event: status\nid: %d\ndata: %s\n\n", told, body), a.Auth.Holds(r)
	})
	if err != nil {
		a.Log.Debug("a stream of the status has ended", zap.Error(err))
	}
}
