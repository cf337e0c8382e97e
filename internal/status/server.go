package status

import (
	"context"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"go.uber.org/zap"
)

// Config is what a Server is made of.
type Config struct {
	Source  Source        // required
	Health  func() Health // required; must not block
	Metrics *Metrics      // nil: no /metrics
	Logger  *zap.Logger   // nil: silence
	Desk    Desk          // nil: nothing but the Snapshot is shown
	Do      Do            // nil: no order is taken

	// NodeID and Version are shown while the Source has never answered.
	NodeID  string
	Version string
	// Hosts are further host names under which a listener on loopback may be
	// asked, for a reverse proxy that passes its own on.
	Hosts []string
	// Patience is how long a request waits for the Source; 0: 1.5 s.
	Patience time.Duration
}

// maxRequests is how many requests that need the Source or the registry are
// served at a time. Health endpoints are cheap and not counted.
const maxRequests = 32

// Server answers for one node over HTTP. It is a handler; [Server.Serve] also runs
// the server around it.
type Server struct {
	cfg     Config
	watch   *watch
	page    *page
	handler http.Handler
}

// New returns a Server for cfg.
func New(cfg Config) *Server {
	if cfg.Logger == nil {
		cfg.Logger = zap.NewNop()
	}
	if cfg.Patience <= 0 {
		cfg.Patience = defaultPatience
	}
	s := &Server{cfg: cfg, watch: newWatch(cfg.Source, cfg.Patience, cfg.Logger), page: newPage()}

	slots := make(chan struct{}, maxRequests)
	mux := http.NewServeMux()
	s.pageRoutes(mux, slots)
	s.apiRoutes(mux, slots)
	mux.HandleFunc("/-/healthy", s.serveHealthy)
	mux.HandleFunc("/-/ready", s.serveReady)
	mux.HandleFunc("/-/leader", s.serveLeader)
	if cfg.Metrics != nil {
		mux.Handle("/metrics", limit(slots, cfg.Metrics.handler(cfg.Logger)))
	}
	s.handler = s.guard(mux)
	return s
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// guard is what every request passes: the headers that keep a browser from being
// turned against the node, the check of the host, and read-only methods.
func (s *Server) guard(next http.Handler) http.Handler {
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
		h.Set("Content-Security-Policy", s.page.policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		if !hostAllowed(r, names) {
			http.Error(w, "This listener is on loopback and does not answer as "+r.Host+
				": ask for localhost or 127.0.0.1, or allow the host name.", http.StatusMisdirectedRequest)
			return
		}
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			h.Set("Allow", "GET, HEAD")
			http.Error(w, "This interface is read-only: use GET.", http.StatusMethodNotAllowed)
			return
		}
		next.ServeHTTP(w, r)
	})
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

// limit serves at most cap(slots) requests at a time and turns the others away.
func limit(slots chan struct{}, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
			next.ServeHTTP(w, r)
		default:
			w.Header().Set("Retry-After", "1")
			http.Error(w, "Too many requests at a time: try again in a second.", http.StatusServiceUnavailable)
		}
	})
}

// snapshot is the watch's, completed with what is known without any Source.
func (s *Server) snapshot(ctx context.Context) (Snapshot, bool) {
	snap, known := s.watch.snapshot(ctx)
	if snap.NodeID == "" {
		snap.NodeID, snap.Version = s.cfg.NodeID, s.cfg.Version
	}
	if snap.Error != "" {
		// The node's own role needs no Redis, and the last known one may be over.
		snap.Role = RoleConnecting
		if s.cfg.Health().Leading {
			snap.Role = RoleLeading
		}
	}
	return snap, known
}
