package status

import (
	"cmp"
	"fmt"
	"net/http"
)

// Health is the daemon's own view of its state, from memory. Reading it needs no request to a server.
type Health struct {
	Live    bool   // every loop has made progress recently
	Ready   bool   // the configuration is valid and the election loop runs
	Leading bool   // this node leads, inside its trust window
	Leader  string // the node that leads; "" if no node leads, or if the leader is unknown
	Waiting string // why this node does not take the free lock
	Reason  string // why the node is not Live or not Ready
}

// serveHealthy tells a supervisor whether the process still works. The answer does not depend on Redis, because restarting a node does not
// bring Redis back.
func (s *Server) serveHealthy(w http.ResponseWriter, _ *http.Request) {
	h := s.cfg.Health()
	answer(w, h.Live, "healthy", "not healthy: "+cmp.Or(h.Reason, "a loop makes no progress"))
}

// serveReady reports whether the node takes part in the election, as leader or as standby.
func (s *Server) serveReady(w http.ResponseWriter, _ *http.Request) {
	h := s.cfg.Health()
	answer(w, h.Ready, "ready", "not ready: "+cmp.Or(h.Reason, "the election loop does not run yet"))
}

// serveLeader answers a load balancer that looks for the leader.
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
	// The error is ignored, because a probe that has hung up needs no answer.
	_, _ = fmt.Fprintln(w, text)
}
