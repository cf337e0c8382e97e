package status

import (
	"net/http"
	"net/url"
	"strings"

	"go.uber.org/zap"

	"baton/internal/operate"
)

// pageRoutes are those of people.
func (s *Server) pageRoutes(mux *http.ServeMux, slots chan struct{}) {
	s.page.desk = newDesk(s.cfg.Node)
	s.page.hub = newHub(s)
	for _, path := range []string{"/{$}", "/jobs/{job}", "/jobs/{job}/runs/{run}", "/timeline", "/dead-letters"} {
		mux.Handle(path, s.limit(slots, http.HandlerFunc(s.servePage)))
	}
	for path, handler := range map[string]http.HandlerFunc{
		"GET /confirm": s.serveConfirm, "GET /done": s.serveDone, "GET /sign-in": s.serveSignIn,
		"POST /sign-out": s.serveSignOut, "POST /do": s.serveDo,
	} {
		mux.Handle(path, s.limit(slots, handler))
	}
	mux.HandleFunc("GET /live", s.serveLive)
	mux.HandleFunc("POST /sign-in", s.serveSignIn) // who guesses waits long for each turn, and has no place meanwhile
}

// topicOf is the page that a request asks for, as whoever asks may see it.
func (s *Server) topicOf(r *http.Request, path, query string) topic {
	return topic{path: path, query: meant(path, query), see: s.auth.maySee(r), order: s.takesOrders(r)}
}

// meant is what a page makes of a query. Each page that is another one is rendered on its
// own, again and again, so that nobody may have as many as there are queries.
func meant(path, query string) string {
	given, err := url.ParseQuery(query)
	if err != nil {
		return ""
	}
	kept := url.Values{}
	keep := func(name string, good func(string) bool) {
		if value := given.Get(name); value != "" && good(value) {
			kept.Set(name, value)
		}
	}
	switch {
	case path == "/":
		keep("jobs", func(v string) bool { return v == "all" })
	case path == "/dead-letters":
		keep("job", func(v string) bool { return len(v) <= operate.MostName })
	case strings.HasPrefix(path, "/jobs/"):
		keep("before", entryID)
		keep("entry", entryID)
	}
	return kept.Encode()
}

// takesOrders reports whether whoever has the token may give orders on this connection.
func (s *Server) takesOrders(r *http.Request) bool { return s.cfg.Do != nil && s.auth.enabled(r) }

func (s *Server) servePage(w http.ResponseWriter, r *http.Request) {
	snap, known := s.snapshot(r.Context())
	d := s.compose(r.Context(), s.topicOf(r, r.URL.EscapedPath(), r.URL.RawQuery), snap, known)
	if d == nil {
		http.NotFound(w, r)
		return
	}
	s.write(w, r, d)
}

// write sends a page to whoever asks for it.
func (s *Server) write(w http.ResponseWriter, r *http.Request, d *document) {
	d.SignedIn, d.CSRF = s.auth.signedIn(r), s.auth.csrf(r)
	body, err := s.page.render("document", d)
	if err != nil {
		s.cfg.Logger.Error("a page was not rendered", zap.Error(err))
		http.Error(w, "The page could not be rendered; see /api/v1/status and the log.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(d.Code)
	if _, err := w.Write(body); err != nil {
		s.cfg.Logger.Debug("a page was not sent", zap.Error(err))
	}
}
