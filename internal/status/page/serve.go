package page

import (
	"net/http"
	"net/url"
	"strings"

	"go.uber.org/zap"

	"baton/internal/operate"
	"baton/internal/status/web"
)

// Routes registers the handlers of the pages in mux. The argument slots limits how many requests are served at the same time.
func (p *Pages) Routes(mux *http.ServeMux, slots chan struct{}) {
	for _, path := range []string{"/{$}", "/jobs/{job}", "/jobs/{job}/runs/{run}", "/timeline", "/dead-letters"} {
		mux.Handle(path, p.Places.Limit(slots, http.HandlerFunc(p.servePage)))
	}
	for path, handler := range map[string]http.HandlerFunc{
		"GET /confirm": p.serveConfirm, "GET /done": p.serveDone, "GET /sign-in": p.serveSignIn,
		"POST /sign-out": p.serveSignOut, "POST /do": p.serveDo,
	} {
		mux.Handle(path, p.Places.Limit(slots, handler))
	}
	mux.HandleFunc("GET /live", p.serveLive)
	mux.HandleFunc("POST /sign-in", p.serveSignIn) // without a slot, because someone who guesses tokens waits long for each turn
}

// topicOf returns the topic of a request: the path, the valid parts of the query, and the caller's rights.
func (p *Pages) topicOf(r *http.Request, path, query string) topic {
	return topic{path: path, query: meant(path, query), see: p.Auth.MaySee(r), order: p.takesOrders(r)}
}

// meant returns the valid parts of a query in a fixed form. Pages are rendered repeatedly, and once for each query. So different queries
// with the same meaning must have the same form.
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
		return filterOf(given).values().Encode()
	case path == "/dead-letters":
		keep("job", func(v string) bool { return len(v) <= operate.MostName })
		keep("group", func(v string) bool { return len(v) == 16 && strings.Trim(v, "0123456789abcdef") == "" })
		keep("page", func(v string) bool { return pageNumber(v) > 1 })
	case path == "/timeline":
		keep("range", func(v string) bool { return v == "1h" || v == "1d" || v == "7d" })
	case strings.HasPrefix(path, "/jobs/"):
		keep("before", operate.IsEntryID)
		keep("entry", operate.IsEntryID)
		keep("range", func(v string) bool { return v == "10m" || v == "30m" })
	}
	return kept.Encode()
}

// takesOrders reports whether the node accepts orders on this connection from callers with the token for orders. It returns false for a
// caller who has only the read-only token.
func (p *Pages) takesOrders(r *http.Request) bool {
	return p.Do != nil && p.Auth.Enabled(r) && !p.Auth.ReadsOnly(r)
}

func (p *Pages) servePage(w http.ResponseWriter, r *http.Request) {
	snap, known := p.Watch.Snapshot(r.Context())
	d := p.compose(r.Context(), p.topicOf(r, r.URL.EscapedPath(), r.URL.RawQuery), snap, known)
	if d == nil {
		http.NotFound(w, r)
		return
	}
	p.write(w, r, d)
}

// write sends the page d, and adds the data of the caller's session to the page.
func (p *Pages) write(w http.ResponseWriter, r *http.Request, d *document) {
	d.SignedIn, d.CSRF = p.Auth.SignedIn(r), p.Auth.CSRF(r)
	body, err := p.render("document", d)
	if err != nil {
		p.Log.Error("a page was not rendered", zap.Error(err))
		http.Error(w, "The page could not be rendered; see /api/v1/status and the log.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	body = web.Compressed(w.Header(), r, body)
	w.WriteHeader(d.Code)
	if _, err := w.Write(body); err != nil { //nolint:gosec // rendered by html/template, which escapes
		p.Log.Debug("a page was not sent", zap.Error(err))
	}
}
