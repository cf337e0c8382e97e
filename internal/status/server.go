package status

import (
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"baton/internal/operate"
	"baton/internal/status/api"
	"baton/internal/status/auth"
	"baton/internal/status/metrics"
	"baton/internal/status/page"
	"baton/internal/status/state"
	"baton/internal/status/web"
	"baton/internal/text"
)

// Config has the parts and settings of a Server.
type Config struct {
	Source state.Source // required
	// Own returns the node's state without asking a server. It is used until the Source first answers. It may be nil.
	Own     state.Own
	Health  func() Health    // required; must not block
	Metrics *metrics.Metrics // nil: no /metrics
	Logger  *zap.Logger      // nil: silence
	Node    operate.Node     // nil: nothing but the Snapshot is shown
	Do      operate.Do       // nil: no order is taken

	// TokenFile holds the token for orders; "": the node takes no orders over HTTP.
	TokenFile string
	// ReadTokenFile holds a token that shows the same but gives no orders; "": no such token.
	ReadTokenFile string
	// Proxies are the addresses of proxies whose X-Forwarded-Proto the node trusts.
	Proxies []netip.Prefix
	// TLS, if set, encrypts the TCP listeners of Serve.
	TLS *tls.Config
	// NodeID and Version are shown while the Source has never answered.
	NodeID  string
	Version string
	// Hosts are further host names that a listener on loopback accepts, for a
	// reverse proxy that passes its own name on.
	Hosts []string
	// Patience limits how long a request waits for the Source; 0: 1.5 s.
	Patience time.Duration
}

const (
	// maxRequests is how many requests that need the Source are served at a time. Health
	// endpoints are cheap and not counted.
	maxRequests = 32
	// maxScrapes are those for metrics: many open pages do not hide the node from its alarms.
	maxScrapes = 16
)

// Server answers for one node over HTTP. It is a handler; [Server.Serve] also runs
// the server around it.
type Server struct {
	cfg     Config
	watch   *state.State
	page    *page.Pages
	api     *api.API
	auth    *auth.Auth
	mux     *http.ServeMux
	handler http.Handler
	limits  web.Limits
}

// New returns a Server for cfg.
func New(cfg Config) *Server {
	if cfg.Logger == nil {
		cfg.Logger = zap.NewNop()
	}
	if cfg.Node != nil {
		cfg.Node = state.Bounded(cfg.Node)
	}
	s := &Server{cfg: cfg, limits: web.DefaultLimits()}
	s.auth = auth.New(cfg.TokenFile, cfg.Logger).Reads(cfg.ReadTokenFile).Behind(cfg.Proxies)
	s.watch = state.New(state.Config{
		Source: cfg.Source, Own: cfg.Own, Leading: func() bool { return cfg.Health().Leading }, NodeID: cfg.NodeID,
		Version: cfg.Version, Patience: cfg.Patience, Log: cfg.Logger,
	})
	var do operate.Do
	if cfg.Do != nil {
		do = s.watch.Supervised(cfg.Do)
	}
	made := web.NewPlaces(cfg.Logger)
	s.api = api.New(api.Config{
		Watch: s.watch, Auth: s.auth, Node: cfg.Node, Do: do, Places: made, Version: cfg.Version, Log: cfg.Logger,
	})
	s.page = page.New(page.Config{Watch: s.watch, Auth: s.auth, Node: cfg.Node, Do: do, Places: made, Log: cfg.Logger})

	slots, scrapes := make(chan struct{}, maxRequests), make(chan struct{}, maxScrapes)
	mux := http.NewServeMux()
	s.page.Routes(mux, slots)
	s.api.Routes(mux, slots)
	mux.HandleFunc("/-/healthy", s.serveHealthy)
	mux.HandleFunc("/-/ready", s.serveReady)
	mux.HandleFunc("/-/leader", s.serveLeader)
	if cfg.Metrics != nil {
		mux.Handle("/metrics", made.Limit(scrapes, cfg.Metrics.Handler(cfg.Logger)))
	}
	s.mux, s.handler = mux, s.guard(mux)
	return s
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// guard wraps every request. It sets the headers that protect the node from attacks through
// a browser, checks host and method, and identifies the caller.
func (s *Server) guard(mux *http.ServeMux) http.Handler {
	names := map[string]bool{"localhost": true}
	if host, err := os.Hostname(); err == nil {
		// Debian resolves a host's own name to 127.0.1.1.
		names[strings.ToLower(host)] = true
	}
	for _, host := range s.cfg.Hosts {
		names[strings.ToLower(host)] = true
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", s.page.Policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		if !hostAllowed(r, names) {
			s.api.Refuse(w, r, web.Refuse(http.StatusMisdirectedRequest,
				"This listener is on loopback and does not answer as "+text.Clip(r.Host, maxHostShown)+
					": ask for localhost or 127.0.0.1, or allow the host name by http.hosts."))
			return
		}
		allowed := allowedMethods(mux, r)
		if len(allowed) == 0 && strings.HasPrefix(r.URL.Path, "/api/") && reads(r) {
			s.api.Refuse(w, r, web.Refuse(http.StatusNotFound, "There is nothing here: see "+api.Root+"/openapi.json."))
			return
		}
		if len(allowed) == 0 {
			allowed = []string{http.MethodGet, http.MethodHead} // whatever is not there cannot be changed
		}
		if !slices.Contains(allowed, r.Method) {
			h.Set("Allow", strings.Join(allowed, ", "))
			text := "This is read-only: use GET."
			if allowed[0] == http.MethodPost {
				text = "This is an order: use POST."
			}
			s.api.Refuse(w, r, web.Refuse(http.StatusMethodNotAllowed, text))
			return
		}
		if r.Body != nil {
			r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		}
		who, err := s.auth.Identify(r)
		if err != nil {
			s.api.Refuse(w, r, web.Refused(err))
			return
		}
		mux.ServeHTTP(w, r.WithContext(auth.WithCaller(r.Context(), who)))
	})
}

// maxHostShown bounds the bytes of a foreign host name that an answer repeats.
const maxHostShown = 255

// maxBody bounds the bytes of a request's body.
const maxBody = 64 << 10

func reads(r *http.Request) bool { return r.Method == http.MethodGet || r.Method == http.MethodHead }

// allowedMethods returns the methods that have a handler at the path of r.
func allowedMethods(mux *http.ServeMux, r *http.Request) (methods []string) {
	if patternOf(mux, r, http.MethodGet) != "" {
		methods = []string{http.MethodGet, http.MethodHead}
	}
	// A pattern without a method is for reading only.
	if strings.HasPrefix(patternOf(mux, r, http.MethodPost), "POST ") {
		methods = append(methods, http.MethodPost)
	}
	return methods
}

func patternOf(mux *http.ServeMux, r *http.Request, method string) string {
	of := *r
	of.Method = method
	_, pattern := mux.Handler(&of)
	return pattern
}

// hostAllowed refuses, on a connection over loopback, host names that are not this
// machine's. Otherwise any web page could have its own name resolve to 127.0.0.1
// and read this one (DNS rebinding). Addresses cannot be rebound.
func hostAllowed(r *http.Request, names map[string]bool) bool {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	if !ok || !local.IP.IsLoopback() || r.Host == "" { // no browser leaves the host out; HTTP/1.0 probes do
		return true
	}
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
	return net.ParseIP(host) != nil || names[host] || strings.HasSuffix(host, ".localhost")
}
