package status

import (
	"net/http"

	"go.uber.org/zap"
)

// pageRoutes are those of people.
func (s *Server) pageRoutes(mux *http.ServeMux, slots chan struct{}) {
	mux.Handle("/{$}", limit(slots, http.HandlerFunc(s.servePage)))
}

func (s *Server) servePage(w http.ResponseWriter, r *http.Request) {
	snap, known := s.snapshot(r.Context())
	body, err := s.page.render(snap, known, r.URL.Query().Get("jobs") == "all")
	if err != nil {
		s.cfg.Logger.Error("status page was not rendered", zap.Error(err))
		http.Error(w, "The page could not be rendered; see /api/v1/status and the log.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if _, err := w.Write(body); err != nil {
		s.cfg.Logger.Debug("status page was not sent", zap.Error(err))
	}
}
