package api

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

	"baton/internal/diagnose"
	"baton/internal/operate"
	"baton/internal/status/auth"
	"baton/internal/status/state"
	"baton/internal/status/web"
)

const (
	// Root is the prefix of every endpoint's path.
	Root = "/api/v1"
	// askWithin is the time limit of a query.
	askWithin = 8 * time.Second
	// maxAsked is the maximum number of concurrent queries that read more than the Snapshot.
	maxAsked = 8
)

// Config contains the parts and settings of an API.
type Config struct {
	Watch   *state.State
	Auth    *auth.Auth
	Node    operate.Node // if nil, the API shows only the Snapshot
	Do      operate.Do   // if nil, the API takes no orders
	Places  *web.RequestLimiter
	Version string
	Log     *zap.Logger
}

// API serves a node's state to programs, and accepts their orders.
type API struct{ Config }

// New returns an API with the configuration c.
func New(c Config) *API { return &API{c} }

// apiError is the answer to a request that failed.
type apiError struct {
	// Error describes the cause and the remedy.
	Error string `json:"error"`
	// Code is one word for programs.
	Code string `json:"code"`
	// Outcome is the part of the order that was carried out before the failure.
	Outcome *operate.Outcome `json:"outcome,omitempty"`
}

// codes contains the default code for each HTTP status of an error.
var codes = map[int]string{
	http.StatusBadRequest: "bad_request", http.StatusUnauthorized: "unauthorized", http.StatusForbidden: "forbidden",
	http.StatusNotFound: "not_found", http.StatusMethodNotAllowed: "method_not_allowed", http.StatusConflict: "refused",
	http.StatusRequestEntityTooLarge: "too_large", http.StatusUnsupportedMediaType: "unsupported_media_type",
	http.StatusMisdirectedRequest: "misdirected", http.StatusUnprocessableEntity: "invalid",
	http.StatusTooManyRequests:    "too_many_attempts",
	http.StatusServiceUnavailable: "unavailable",
}

// endpoint is one route of the API.
type endpoint struct {
	method, path string
	summary      string
	query        []parameter
	body         any  // a value of the body's type; nil if there is no body
	reply        any  // a value of the reply's type
	private      bool // only callers who may see records and output may use the endpoint
	ask          askFunc
}

// askFunc answers a request with a value of the endpoint's type.
type askFunc func(a *API, r *http.Request) (any, error)

// parameter is a parameter of a query.
type parameter struct {
	name, kind, summary string
}

// Routes registers the endpoints of the API.
func (a *API) Routes(mux *http.ServeMux, slots chan struct{}) {
	asked := make(chan struct{}, maxAsked)
	local := make(chan struct{}, maxAsked) // for the admin socket, so that requests from the network cannot block it
	for _, e := range endpoints() {
		places := asked
		if e.path == "/status" || e.path == "/openapi.json" {
			places = slots
		}
		mux.HandleFunc(e.method+" "+Root+e.path, func(w http.ResponseWriter, r *http.Request) {
			free := places
			if auth.OverSocket(r) {
				free = local
			}
			a.serveEndpoint(w, r, e, free)
		})
	}
	mux.HandleFunc("GET "+Root+"/stream", a.serveStream)
}

// serveEndpoint answers one request, or refuses the request with a reason.
func (a *API) serveEndpoint(w http.ResponseWriter, r *http.Request, e endpoint, places chan struct{}) {
	if err := a.mayAsk(r, e); err != nil {
		a.Refuse(w, r, web.Refused(err))
		return
	}
	if e.method == http.MethodPost {
		if web.TakeBody(r) { // the normal deadline applies; only the order itself may take longer
			web.AllowOrder(w)
		}
		a.reply(w, r, e)
		return
	}
	if !a.Places.InPlace(w, places, func(w http.ResponseWriter) {
		ctx, cancel := context.WithTimeout(r.Context(), askWithin)
		defer cancel()
		a.reply(w, r.WithContext(ctx), e)
	}) {
		a.Refuse(w, r, web.ErrBusy)
	}
}

// reply calls the endpoint and sends its answer or its error.
func (a *API) reply(w http.ResponseWriter, r *http.Request, e endpoint) {
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

// mayAsk returns nil if the caller may use the endpoint, otherwise the reason why not.
func (a *API) mayAsk(r *http.Request, e endpoint) error {
	if e.method == http.MethodPost {
		return a.Auth.MayOrder(r)
	}
	if !e.private || a.Auth.MaySee(r) {
		return nil
	}
	if a.Auth.TakesToken() {
		return auth.ErrSignIn
	}
	return web.Refuse(http.StatusForbidden, "this node answers this request only on its own host, "+
		"because its configuration has no http.token_file")
}

// asked returns the endpoint's answer. It turns a panic into an error.
func (a *API) asked(r *http.Request, e endpoint) (reply any, err error) {
	defer func() {
		if p := recover(); p != nil {
			a.Log.Error("a request panicked", zap.String("path", e.path), zap.Any("panic", p), zap.ByteString("stack", debug.Stack()))
			err = errors.New("the request failed in the node; see its log")
		}
	}()
	if err := strict(r, e.query); err != nil {
		return nil, err
	}
	return e.ask(a, r)
}

// fail sends an error as the answer to a request. The answer contains the error's code.
func (a *API) fail(w http.ResponseWriter, r *http.Request, reply any, err error) {
	var coded *operate.Coded
	if never, ok := errors.AsType[*web.Refusal](err); ok {
		a.Refuse(w, r, never)
		return
	}
	status := http.StatusServiceUnavailable
	switch {
	case errors.Is(err, operate.ErrNotFound):
		status = http.StatusNotFound
	case errors.Is(err, operate.ErrInvalid):
		status = http.StatusUnprocessableEntity
	case errors.Is(err, operate.ErrRefused), errors.Is(err, operate.ErrNoLeader):
		status = http.StatusConflict
	}
	answer := apiError{Error: err.Error(), Code: codes[status]}
	if errors.Is(err, operate.ErrNoLeader) {
		answer.Code = "no_leader"
	}
	if errors.As(err, &coded) && coded.Code != "" {
		answer.Code = coded.Code
	}
	if out, ok := reply.(operate.Outcome); ok && (out.Text != "" || out.From != "" || out.Was != nil || !out.Since.IsZero()) {
		answer.Outcome = &out
	}
	if status == http.StatusServiceUnavailable && r.Method == http.MethodPost {
		// The order may have been carried out, so a program must not repeat the order without checking.
		answer.Error, answer.Code = "it is not known whether this was done: "+answer.Error, "unknown"
	} else if status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "2")
		a.Log.Debug("the API could not answer", zap.String("path", r.URL.Path), zap.Error(err))
	}
	a.answer(w, status, answer)
}

// Refuse sends a refusal. The refusal is JSON for a path of the API, otherwise plain text.
func (a *API) Refuse(w http.ResponseWriter, r *http.Request, why *web.Refusal) {
	if why.Code == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="baton"`)
	}
	if why.Code == http.StatusTooManyRequests || why.Code == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "2")
	}
	if strings.HasPrefix(r.URL.Path, "/api/") {
		a.answer(w, why.Code, apiError{Error: why.Text, Code: codes[why.Code]})
		return
	}
	http.Error(w, why.Text, why.Code)
}

// answer sends a value as JSON.
func (a *API) answer(w http.ResponseWriter, code int, value any) {
	body, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		a.Log.Error("cannot encode an answer of the API", zap.Error(err))
		code, body = http.StatusServiceUnavailable,
			[]byte(`{"error": "the answer could not be encoded; see the node's log", "code": "unavailable"}`)
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(code)
	if _, err := w.Write(append(body, '\n')); err != nil {
		a.Log.Debug("an answer of the API was not sent", zap.Error(err))
	}
}

// seen returns the part of a state that the caller may see.
func (a *API) seen(r *http.Request, snap diagnose.Snapshot) diagnose.Snapshot {
	if a.Auth.MaySee(r) {
		return snap
	}
	return state.Public(snap)
}

// seenEntries returns the part of a history that the caller may see.
func (a *API) seenEntries(r *http.Request, entries []operate.Entry) []operate.Entry {
	if a.Auth.MaySee(r) {
		return entries
	}
	shown := append([]operate.Entry{}, entries...)
	for i, e := range shown {
		shown[i].Run = state.PublicRun(e.Run)
		if e.Missed != nil {
			m := *e.Missed
			m.Error = state.PublicError(m.Error)
			shown[i].Missed = &m
		}
	}
	return shown
}

// give carries out an order if the caller may give it.
func (a *API) give(r *http.Request, o operate.Order) (operate.Outcome, error) {
	if err := a.Auth.MayOrder(r); err != nil {
		return operate.Outcome{}, err
	}
	if a.Do == nil {
		return operate.Outcome{}, fmt.Errorf("%w: this node takes no orders", operate.ErrRefused)
	}
	return a.Do(r.Context(), o)
}
