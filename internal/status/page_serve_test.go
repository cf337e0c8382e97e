package status

import (
	"net/http"

	"go.uber.org/zap"

	"baton/internal/operate"
)

// config is what the server of a test is made of.
type config struct {
	Source Source
	Node   operate.Node
	Do     operate.Do
}

// server serves pages as a node does to whoever shows no token.
type server struct {
	page *page
	*http.ServeMux
}

func newServer(c config) *server {
	log := zap.NewNop()
	w := newWatch(watchConfig{source: c.Source, leading: func() bool { return false }, log: log})
	if c.Node != nil {
		c.Node = bounded(c.Node)
	}
	s := &server{newPage(pageConfig{watch: w, auth: newAuth("", log), node: c.Node, do: c.Do, places: newPlaces(log), log: log}), http.NewServeMux()}
	s.page.routes(s.ServeMux, make(chan struct{}, 32))
	return s
}
