package page

import (
	"net/http"

	"go.uber.org/zap"

	"baton/internal/operate"
	"baton/internal/status/auth"
	"baton/internal/status/state"
	"baton/internal/status/web"
)

// config contains the parts of a test's server.
type config struct {
	Source state.Source
	Node   operate.Node
	Do     operate.Do
}

// server serves pages as a node does to callers without a token.
type server struct {
	page *Pages
	*http.ServeMux
}

func newServer(c config) *server {
	log := zap.NewNop()
	w := state.New(state.Config{Source: c.Source, Leading: func() bool { return false }, Log: log})
	if c.Node != nil {
		c.Node = state.Bounded(c.Node)
	}
	s := &server{New(Config{Watch: w, Auth: auth.New("", log), Node: c.Node, Do: c.Do, Places: web.NewRequestLimiter(log),
		Log: log}), http.NewServeMux()}
	s.page.Routes(s.ServeMux, make(chan struct{}, 32))
	return s
}
