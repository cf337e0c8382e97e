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

// Config contains the parts and settings of a Server.
type Config struct {
	Source state.Source // required
	// Own returns the node's state without asking a server. It is used until the Source first answers, and may be nil.
	Own     state.Own
	Health  func() Health    // required; must not block
	Metrics *metrics.Metrics // if nil, there is no /metrics
	Logger  *zap.Logger      // if nil, nothing is logged
	Node    operate.Node     // if nil, only the Snapshot is shown
	Do      operate.Do       // if nil, no orders are accepted

	// TokenFile contains the token for orders. If it is "", the node accepts no orders over HTTP.
	TokenFile string
	// ReadTokenFile contains the read-only token. Callers with this token see everything but cannot give orders. "" means that there is no
	// such token.
	ReadTokenFile string
	// Proxies are the addresses of the proxies whose header X-Forwarded-Proto the node trusts.
	Proxies []netip.Prefix
	// TLS, if set, encrypts the TCP listeners of Serve.
	TLS *tls.Config
	// NodeID and Version are shown until the Source first answers.
	NodeID  string
	Version string
	// Hosts are the host names that a listener on loopback accepts in addition to the names of this machine. A reverse proxy may send its
	// own host name to the node.
	Hosts []string
	// Patience is the maximum time that a request waits for the Source. 0 means 1.5 s.
	Patience time.Duration
}

const (
	// maxRequests is the maximum number of concurrent requests that need the Source. Health endpoints do not count, because they are cheap.
	maxRequests = 32
	// maxScrapes is the maximum number of concurrent scrapes of metrics. It is a separate limit, so that many open pages do not prevent
	// scrapes.
	maxScrapes = 16
)

// Server serves the state of one node over HTTP. It is a handler, and [Server.Serve] runs an HTTP server with this handler.
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

// New returns a Server with the configuration cfg.
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
	made := web.NewRequestLimiter(cfg.Logger)
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

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// guard returns the handler that checks every request first. It sets the headers that protect the node from attacks through a browser,
// checks the host and the method, and identifies the caller.
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
			s.api.Refuse(w, r, web.Refuse(http.StatusNotFound, "The API has no such address: see "+api.Root+"/openapi.json."))
			return
		}
		if len(allowed) == 0 {
			allowed = []string{http.MethodGet, http.MethodHead} // a path that does not exist cannot be changed
		}
		if !slices.Contains(allowed, r.Method) {
			h.Set("Allow", strings.Join(allowed, ", "))
			text := "This address is read-only: use GET."
			if allowed[0] == http.MethodPost {
				text = "This address is for an order: use POST."
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

// maxHostShown is the maximum length in bytes of a foreign host name that an answer repeats.
const maxHostShown = 255

// maxBody is the maximum size of a request's body, in bytes.
const maxBody = 64 << 10

func reads(r *http.Request) bool { return r.Method == http.MethodGet || r.Method == http.MethodHead }

// allowedMethods returns the methods that have a handler at the path of r.
func allowedMethods(mux *http.ServeMux, r *http.Request) (methods []string) {
	if patternOf(mux, r, http.MethodGet) != "" {
		methods = []string{http.MethodGet, http.MethodHead}
	}
	// A pattern without a method is only for reading.
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

// hostAllowed reports whether a request may be served. Over loopback, the host name in the request must belong to this machine. Otherwise
// any web page could make its own name resolve to 127.0.0.1 and read this node's pages (DNS rebinding). A request for an IP address is
// allowed, because no web page can change where an IP address leads.
func hostAllowed(r *http.Request, names map[string]bool) bool {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	if !ok || !local.IP.IsLoopback() || r.Host == "" { // only probes with HTTP/1.0 omit the host, never a browser
		return true
	}
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
	return net.ParseIP(host) != nil || names[host] || strings.HasSuffix(host, ".localhost")
}
