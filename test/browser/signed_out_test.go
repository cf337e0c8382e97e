package browser

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"baton/internal/status"
	"baton/internal/status/statustest"
)

// TestEndOfAProxysSessionLeadsToItsSignIn opens the page through a proxy that stops forwarding the browser's requests. The page must not
// stay open as if the node were away.
func TestEndOfAProxysSessionLeadsToItsSignIn(t *testing.T) {
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<h1>Who are you?</h1>"))
	}))
	t.Cleanup(provider.Close)
	snap, shelf := statustest.Large(time.Now(), 5, 3, 0)
	node := status.New(status.Config{
		Source: statustest.Fixed(snap), Node: shelf, Health: func() status.Health { return status.Health{Live: true, Ready: true} },
	})
	var over atomic.Bool
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if over.Load() {
			http.Redirect(w, r, provider.URL, http.StatusFound)
			return
		}
		node.ServeHTTP(w, r)
	}))
	t.Cleanup(proxy.Close)
	t.Cleanup(proxy.CloseClientConnections) // the stream of the page
	l := &lab{t: t, browser: startBrowser(t)}
	b := l.openAt(t, proxy.URL, "/")
	if text := b.text(); !strings.Contains(text, "leads") {
		t.Fatalf("no page of the node: %s", text)
	}
	over.Store(true)
	proxy.CloseClientConnections()
	b.await("the sign-in of the proxy", `document.querySelector("h1")?.innerText === "Who are you?"`)
}
