package status

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"go.uber.org/zap"
)

// apiRoutes are those of programs.
func (s *Server) apiRoutes(mux *http.ServeMux, slots chan struct{}) {
	mux.Handle("/api/v1/status", limit(slots, http.HandlerFunc(s.serveStatus)))
}

// serveStatus answers 200 also with a state that is not fresh: age_ms and error
// tell. 503 means that nothing is known yet.
func (s *Server) serveStatus(w http.ResponseWriter, r *http.Request) {
	snap, known := s.snapshot(r.Context())
	// Lists are never null: programs may loop over them unseen.
	snap.Nodes = append([]Node{}, snap.Nodes...)
	snap.Jobs = append([]Job{}, snap.Jobs...)
	snap.Events = append([]Event{}, snap.Events...)
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	if !known {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	if err := enc.Encode(snap); err != nil && !errors.Is(err, io.ErrClosedPipe) {
		s.cfg.Logger.Debug("status was not sent", zap.Error(err))
	}
}
