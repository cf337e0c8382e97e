package status

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"go.uber.org/zap"

	"baton/internal/operate"
)

const (
	apiRoot = "/api/v1"
	// askWithin is what a question to the servers gets.
	askWithin = 8 * time.Second
	// maxAsked are asked at a time, beyond the Snapshot.
	maxAsked = 8
)

// apiConfig is what an API is made of.
type apiConfig struct {
	watch   *watch
	auth    *auth
	node    operate.Node // nil: nothing but the Snapshot is told
	do      operate.Do   // nil: no order is taken
	places  *places
	version string
	log     *zap.Logger
}

// api answers programs.
type api struct{ apiConfig }

func newAPI(c apiConfig) *api { return &api{c} }

// apiError is what a program is told when it does not get what it asked for.
type apiError struct {
	// Error says what happened, and what to do.
	Error string `json:"error"`
	// Code is one word for programs.
	Code string `json:"code"`
	// Outcome is what was done before it went wrong.
	Outcome *operate.Outcome `json:"outcome,omitempty"`
}

// codes are the words for errors that have no better one.
var codes = map[int]string{
	http.StatusBadRequest: "bad_request", http.StatusUnauthorized: "unauthorized", http.StatusForbidden: "forbidden",
	http.StatusNotFound: "not_found", http.StatusMethodNotAllowed: "method_not_allowed", http.StatusConflict: "refused",
	http.StatusRequestEntityTooLarge: "too_large", http.StatusUnsupportedMediaType: "unsupported_media_type",
	http.StatusMisdirectedRequest: "misdirected", http.StatusUnprocessableEntity: "invalid", http.StatusTooManyRequests: "too_many_attempts",
	http.StatusServiceUnavailable: "unavailable",
}

// endpoint is one route of the API.
type endpoint struct {
	method, path string
	summary      string
	query        []parameter
	body         any  // a value of its type; nil: it has none
	reply        any  // likewise
	private      bool // only for those who may see records and output
	ask          askFunc
}

// askFunc answers a request with a value of the endpoint's type.
type askFunc func(a *api, r *http.Request) (any, error)

// parameter is one of a query.
type parameter struct {
	name, kind, summary string
}

// apiRoutes are those of programs.
func (a *api) routes(mux *http.ServeMux, slots chan struct{}) {
	asked := make(chan struct{}, maxAsked)
	local := make(chan struct{}, maxAsked) // nobody on the network takes the admin socket's places
	for _, e := range endpoints() {
		places := asked
		if e.path == "/status" || e.path == "/openapi.json" {
			places = slots
		}
		mux.HandleFunc(e.method+" "+apiRoot+e.path, func(w http.ResponseWriter, r *http.Request) {
			free := places
			if overSocket(r) {
				free = local
			}
			a.serveEndpoint(w, r, e, free)
		})
	}
	mux.HandleFunc("GET "+apiRoot+"/stream", a.serveStream)
}

// serveEndpoint answers one request, or says why not.
func (a *api) serveEndpoint(w http.ResponseWriter, r *http.Request, e endpoint, places chan struct{}) {
	if err := a.mayAsk(r, e); err != nil {
		a.refuse(w, r, refused(err))
		return
	}
	if e.method == http.MethodPost {
		if take(r) { // within the time of any request; only what it asks for may take longer
			patient(w)
		}
		a.reply(w, r, e)
		return
	}
	if !a.places.inPlace(w, places, func(w http.ResponseWriter) {
		ctx, cancel := context.WithTimeout(r.Context(), askWithin)
		defer cancel()
		a.reply(w, r.WithContext(ctx), e)
	}) {
		a.refuse(w, r, errBusy)
	}
}

// reply asks, and sends what comes of it.
func (a *api) reply(w http.ResponseWriter, r *http.Request, e endpoint) {
	reply, err := a.asked(r, e)
	if err != nil {
		a.fail(w, r, reply, err)
		return
	}
	code := http.StatusOK
	if a, ok := reply.(statusReply); ok && !a.known {
		code = http.StatusServiceUnavailable
	}
	a.answer(w, code, reply)
}

// mayAsk says why a request is not answered.
func (a *api) mayAsk(r *http.Request, e endpoint) error {
	if e.method == http.MethodPost {
		return a.auth.mayOrder(r)
	}
	if !e.private || a.auth.maySee(r) {
		return nil
	}
	if a.auth.takesToken() {
		return errSignIn
	}
	return &refusal{http.StatusForbidden, "without http.token_file in this node's configuration this is shown on its own host only"}
}

// asked is an endpoint's answer; a panic is an error.
func (a *api) asked(r *http.Request, e endpoint) (reply any, err error) {
	defer func() {
		if p := recover(); p != nil {
			a.log.Error("a request panicked", zap.String("path", e.path), zap.Any("panic", p), zap.ByteString("stack", debug.Stack()))
			err = errors.New("the request failed in the node; see its log")
		}
	}()
	if err := strict(r, e.query); err != nil {
		return nil, err
	}
	return e.ask(a, r)
}

// fail says what went wrong.
func (a *api) fail(w http.ResponseWriter, r *http.Request, reply any, err error) {
	var coded *operate.Coded
	if never, ok := errors.AsType[*refusal](err); ok {
		a.refuse(w, r, never)
		return
	}
	status := http.StatusServiceUnavailable
	switch {
	case errors.Is(err, operate.ErrNotFound):
		status = http.StatusNotFound
	case errors.Is(err, operate.ErrInvalid):
		status = http.StatusUnprocessableEntity
	case errors.Is(err, operate.ErrRefused), errors.Is(err, operate.ErrNobodyLeads):
		status = http.StatusConflict
	}
	answer := apiError{Error: err.Error(), Code: codes[status]}
	if errors.Is(err, operate.ErrNobodyLeads) {
		answer.Code = "nobody_leads"
	}
	if errors.As(err, &coded) && coded.Code != "" {
		answer.Code = coded.Code
	}
	if out, ok := reply.(operate.Outcome); ok && (out.Text != "" || out.From != "" || out.Was != nil || !out.Since.IsZero()) {
		answer.Outcome = &out
	}
	if status == http.StatusServiceUnavailable && r.Method == http.MethodPost {
		// It may have been done: nobody shall repeat it unseen.
		answer.Error, answer.Code = "it is not known whether this was done: "+answer.Error, "unknown"
	} else if status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "2")
		a.log.Debug("the API could not answer", zap.String("path", r.URL.Path), zap.Error(err))
	}
	a.answer(w, status, answer)
}

// refuse answers as whoever asks reads it.
func (a *api) refuse(w http.ResponseWriter, r *http.Request, why *refusal) {
	if why.code == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="baton"`)
	}
	if why.code == http.StatusTooManyRequests || why.code == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "2")
	}
	if strings.HasPrefix(r.URL.Path, "/api/") {
		a.answer(w, why.code, apiError{Error: why.text, Code: codes[why.code]})
		return
	}
	http.Error(w, why.text, why.code)
}

// answer sends a value as JSON.
func (a *api) answer(w http.ResponseWriter, code int, value any) {
	body, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		a.log.Error("an answer of the API could not be written down", zap.Error(err))
		code, body = http.StatusServiceUnavailable, []byte(`{"error": "the answer could not be written down; see the node's log", "code": "unavailable"}`)
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(code)
	if _, err := w.Write(append(body, '\n')); err != nil {
		a.log.Debug("an answer of the API was not sent", zap.Error(err))
	}
}

// seen is a state as whoever asks may see it.
func (a *api) seen(r *http.Request, snap Snapshot) Snapshot {
	if a.auth.maySee(r) {
		return snap
	}
	return public(snap)
}

// seenEntries are entries of a history likewise.
func (a *api) seenEntries(r *http.Request, entries []operate.Entry) []operate.Entry {
	if a.auth.maySee(r) {
		return entries
	}
	shown := append([]operate.Entry{}, entries...)
	for i, e := range shown {
		shown[i].Run = publicRun(e.Run)
		if e.Missed != nil {
			m := *e.Missed
			m.Error = publicError(m.Error)
			shown[i].Missed = &m
		}
	}
	return shown
}

// give carries out an order that may be given.
func (a *api) give(r *http.Request, o operate.Order) (operate.Outcome, error) {
	if err := a.auth.mayOrder(r); err != nil {
		return operate.Outcome{}, err
	}
	if a.do == nil {
		return operate.Outcome{}, fmt.Errorf("%w: this node takes no orders", operate.ErrRefused)
	}
	return a.do(r.Context(), o)
}
