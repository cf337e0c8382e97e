package status

import (
	"cmp"
	"fmt"
	"net/http"
)

// Health is the daemon's state from its own memory, read without asking a server.
type Health struct {
	Live    bool   // every loop made progress lately
	Ready   bool   // the configuration is valid and the election loop runs
	Leading bool   // this node leads, inside its trust window
	Leader  string // the node that leads; "": none, or unknown
	Waiting string // why this node does not take the free lock
	Reason  string // why not Live or not Ready
}

// serveHealthy answers a supervisor whether the process still works. It does not
// depend on Redis: restarting a node does not bring Redis back.
func (s *Server) serveHealthy(w http.ResponseWriter, _ *http.Request) {
	h := s.cfg.Health()
	answer(w, h.Live, "healthy", "not healthy: "+cmp.Or(h.Reason, "a loop makes no progress"))
}

// serveReady answers whether the node takes part in the election, in either role.
func (s *Server) serveReady(w http.ResponseWriter, _ *http.Request) {
	h := s.cfg.Health()
	answer(w, h.Ready, "ready", "not ready: "+cmp.Or(h.Reason, "the election loop does not run yet"))
}

// serveLeader lets a load balancer find the leader.
func (s *Server) serveLeader(w http.ResponseWriter, _ *http.Request) {
	h := s.cfg.Health()
	text := "not leading; leader: " + cmp.Or(h.Leader, "unknown")
	if h.Leader == "" && h.Waiting != "" {
		text = "not leading: " + h.Waiting
	}
	answer(w, h.Leading, "leading", text)
}

func answer(w http.ResponseWriter, ok bool, yes, no string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	text := yes
	if !ok {
		w.WriteHeader(http.StatusServiceUnavailable)
		text = no
	}
	// A probe that hung up wants no answer.
	_, _ = fmt.Fprintln(w, text)
}
