package browser

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// thePageStandsBelowAPath opens the page of a node through a proxy that serves the node below a path and removes the path from requests.
// The test checks that signing in, orders and updates of the page work there, and that no address on the page leaves the path.
func thePageStandsBelowAPath(t *testing.T, l *lab) {
	const below = "/tools/baton"
	node, err := url.Parse(l.AwaitLeader(soon).URL())
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var outside []string
	proxy := &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(node)
		r.Out.Host = r.In.Host
	}}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, below+"/") {
			mu.Lock()
			outside = append(outside, r.URL.Path)
			mu.Unlock()
		}
		http.StripPrefix(below, proxy).ServeHTTP(w, r)
	}))
	t.Cleanup(func() { front.CloseClientConnections(); front.Close() })
	b := l.openAt(t, front.URL+below, "/jobs/report")
	b.click("Sign in")
	b.signIn()
	b.click("Run now…")
	b.click("Run now")
	b.await("the end of the run, without a click", `document.querySelector(".lead .chip")?.textContent === "succeeded"`)
	if !b.is(`performance.getEntriesByType("resource").every((e) => new URL(e.name).pathname.startsWith("` + below + `/"))`) {
		t.Error("the page asks for something outside of its path")
	}
	for _, path := range []string{"/", "/?show=commands", "/jobs/report", "/timeline", "/dead-letters", "/confirm?action=pause", "/jobs/none", "/sign-in"} {
		b.visit(path)
		var lost []string
		b.eval(`[...document.querySelectorAll("a[href], form[action]")].map((e) => e.getAttribute("href") || e.getAttribute("action"))
			.filter((to) => !new URL(to, location).pathname.startsWith("`+below+`/"))`, &lost)
		if len(lost) > 0 {
			t.Errorf("%s leads out of its path: %s", path, lost)
		}
	}
	b.visit("/jobs/report")
	b.click("Sign out")
	b.await("to be signed out", `location.pathname === "`+below+`/" && document.body.innerText.includes("Sign in")`)
	mu.Lock()
	defer mu.Unlock()
	if len(outside) > 0 {
		t.Errorf("the browser asked for %s", outside)
	}
}
