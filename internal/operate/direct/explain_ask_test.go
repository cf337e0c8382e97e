package direct

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestExplainAsksANodeWithTLSToo(t *testing.T) {
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/v1/status" {
			_, _ = io.WriteString(w, `{"node_id": "a", "lock_key": "baton", "waiting": "stands aside"}`)
		}
	})
	plain, encrypted := httptest.NewServer(h), httptest.NewUnstartedServer(h)
	encrypted.Config.ErrorLog = log.New(io.Discard, "", 0)
	encrypted.StartTLS()
	for _, server := range []*httptest.Server{plain, encrypted} {
		t.Cleanup(server.Close)
		address := server.Listener.Addr().String()
		if s := askNode(t.Context(), address, "a", "baton"); s == nil || s.Waiting != "stands aside" {
			t.Errorf("%s: %+v", server.URL, s)
		}
		if s := askNode(t.Context(), address, "b", "baton"); s != nil {
			t.Errorf("%s: what node a tells is taken for node b's", server.URL)
		}
	}
}
