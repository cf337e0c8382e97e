package notify

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"baton/internal/notify/service"
)

func text(s string) func() (string, error) { return func() (string, error) { return s, nil } }

func format(name string) service.Format {
	f, _ := service.Find(name)
	return f
}

// at posts one event to an address.
func at(t *testing.T, address string) error {
	t.Helper()
	return post(t, NewWebhook(format("json"), text(address), text("the-token")))
}

func post(t *testing.T, w *Webhook) error {
	t.Helper()
	return postWithin(t, soon, w)
}

func postWithin(t *testing.T, limit time.Duration, w *Webhook) error {
	t.Helper()
	defer w.client.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	return w.Send(ctx, Event{ID: "1", Kind: Failed, Job: "users", Text: "it failed"})
}

// answers starts a server that answers every request with a status code.
func answers(t *testing.T, status int, headers ...string) *httptest.Server {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
	}))
	t.Cleanup(s.Close)
	return s
}

func TestAWebhookPostsTheEventAsJSON(t *testing.T) {
	type request struct{ method, kind, token, agent, body string }
	got := make(chan request, 1)
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- request{r.Method, r.Header.Get("Content-Type"), r.Header.Get("Authorization"), r.Header.Get("User-Agent"), string(body)}
	}))
	defer s.Close()
	if err := at(t, s.URL); err != nil {
		t.Fatal(err)
	}
	r := <-got
	wants(t, "request", []string{r.method, r.kind, r.token, r.agent}, "[POST application/json Bearer the-token baton]")
	var e map[string]any
	if err := json.Unmarshal([]byte(r.body), &e); err != nil {
		t.Fatal(err)
	}
	wants(t, "event", []any{e["id"], e["event"], e["job"], e["text"], len(e)}, "[1 failed users it failed 7]")

	if err := post(t, NewPing(text(s.URL), text(""))); err != nil {
		t.Fatal(err)
	}
	r = <-got
	wants(t, "ping", []string{r.method, r.kind, r.token, r.body}, "[GET   ]")
}

func TestWhatAStatusMeans(t *testing.T) {
	for _, c := range []struct {
		status  int
		again   bool
		refused bool
	}{
		{200, false, false}, {201, false, false}, {204, false, false}, {299, false, false},
		{304, false, true}, {400, false, true}, {401, false, true}, {404, false, true}, {410, false, true}, {499, false, true},
		{408, true, false}, {429, true, false}, {500, true, false}, {502, true, false}, {503, true, false}, {599, true, false},
	} {
		err := at(t, answers(t, c.status).URL+"/secret-path")
		if got := err != nil && !errors.Is(err, ErrRefused); got != c.again {
			t.Errorf("%d: %v, tried again: %v", c.status, err, got)
		}
		if errors.Is(err, ErrRefused) != c.refused {
			t.Errorf("%d: %v, want a refusal: %v", c.status, err, c.refused)
		}
		if err != nil && !strings.Contains(err.Error(), fmt.Sprint(c.status)) {
			t.Errorf("%v does not tell the status %d", err, c.status)
		}
	}
}

func TestRedirectsAreFollowedOnTheSameHostOnly(t *testing.T) {
	var elsewhere, here int
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere++ }))
	defer other.Close()
	mux := http.NewServeMux()
	mux.HandleFunc("/end", func(_ http.ResponseWriter, r *http.Request) {
		if body, _ := io.ReadAll(r.Body); r.Method == http.MethodPost && len(body) > 0 && r.Header.Get("Authorization") != "" {
			here++
		}
	})
	for status := range map[int]bool{301: true, 302: true, 303: true, 307: true, 308: true} {
		mux.Handle(fmt.Sprintf("/here%d", status), http.RedirectHandler("/end", status))
		mux.Handle(fmt.Sprintf("/there%d", status), http.RedirectHandler(other.URL+"/secret-path", status))
	}
	mux.Handle("/loop", http.RedirectHandler("/loop", http.StatusTemporaryRedirect))
	mux.HandleFunc("/broken", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "http://secret-path:port/")
		w.WriteHeader(http.StatusTemporaryRedirect)
	})
	s := httptest.NewServer(mux)
	defer s.Close()
	for _, path := range []string{"/there301", "/there302", "/there303", "/there307", "/there308", "/loop", "/here301", "/here302", "/here303"} {
		if err := at(t, s.URL+path); !errors.Is(err, ErrRefused) || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), other.URL) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if err := at(t, s.URL+"/broken"); err == nil {
		t.Error("a broken redirect has passed")
	}
	wants(t, "requests that followed elsewhere, or changed", []int{elsewhere, here}, "[0 0]")
	for _, path := range []string{"/here307", "/here308"} {
		if err := at(t, s.URL+path); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	wants(t, "requests that followed", here, 2)
}

func TestAServerThatHangsIsLeftInTime(t *testing.T) {
	release := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer s.Close()
	defer close(release)
	began := time.Now()
	err := postWithin(t, time.Second, NewWebhook(format("json"), text(s.URL+"/secret-path"), text("the-token")))
	if err == nil || errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "no answer in time") {
		t.Errorf("%v", err)
	}
	if took := time.Since(began); took > soon {
		t.Errorf("it took %v", took)
	}
}

// TestAnAnswerWithoutEndIsAnAnswer checks that an answer without an end is read up to a limit, and that its status code counts.
func TestAnAnswerWithoutEndIsAnAnswer(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for chunk := make([]byte, 8<<10); ; {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	}))
	defer s.Close()
	began := time.Now()
	if err := at(t, s.URL); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took > soon/2 {
		t.Errorf("it took %v", took)
	}
}

// closing starts a server that reads a request, and then writes a text and closes the connection.
func closing(t *testing.T, say string) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			if _, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
				_, _ = io.WriteString(conn, say)
			}
			_ = conn.Close()
		}
	}()
	return "http://" + l.Addr().String()
}

// TestNoErrorTellsTheAddressOrTheToken checks that every error can be shown to anyone.
func TestNoErrorTellsTheAddressOrTheToken(t *testing.T) {
	refused, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := "http://user:secret-word@" + refused.Addr().String()
	_ = refused.Close()
	plain := answers(t, 200)
	const path = "/hooks/secret-path?key=secret-query"
	for what, address := range map[string]string{
		"nobody listens":        nobody + path,
		"the connection closes": closing(t, "") + path,
		"no HTTP":               closing(t, "SSH-2.0 secret-path\r\n") + path,
		"a status is missing":   closing(t, "HTTP/1.1 secret-query\r\n\r\n") + path,
		"a redirect that quotes": closing(t, "HTTP/1.1 307 Go\r\nContent-Length: 0\r\n"+
			"Location: http://[secret-path\r\n\r\n") + path,
		"not the expected protocol": strings.Replace(plain.URL, "http:", "https:", 1) + path,
		"no scheme":                 "hooks.example.com" + path,
		"another scheme":            "file:///hooks/secret-path",
		"no host":                   "https://" + path,
		"a control character":       "https://host/\x7fsecret-path",
		"a bad escape":              "https://host/%zzsecret-path",
		"a bad port":                "https://host:secret-word/",
		"empty":                     "",
	} {
		err := at(t, address)
		if err == nil {
			t.Errorf("%s: no error", what)
			continue
		}
		t.Logf("%s: %v", what, err)
		if errors.Is(err, ErrRefused) {
			t.Errorf("%s is not tried again: %v", what, err)
		}
		for _, secret := range []string{"secret", "the-token", "%zz"} {
			if strings.Contains(err.Error(), secret) {
				t.Errorf("%s: %v", what, err)
			}
		}
	}
}

func TestACertificateThatNobodyVouchesForIsNotAccepted(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was told") }))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	defer s.Close()
	if err := at(t, s.URL); err == nil || !strings.Contains(err.Error(), "failed to verify certificate") {
		t.Errorf("%v", err)
	}
}

// TestAddressAndTokenAreReadForEveryAttempt checks that the next attempt uses a file that was created or corrected in the meantime.
func TestAddressAndTokenAreReadForEveryAttempt(t *testing.T) {
	var tokens []string
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		tokens = append(tokens, r.Header.Get("Authorization"))
	}))
	defer s.Close()
	missing := errors.New("url_file: not there")
	var address, token string
	problem := missing
	w := NewWebhook(format("json"), func() (string, error) { return address, problem }, func() (string, error) { return token, nil })
	if err := post(t, w); !errors.Is(err, missing) || errors.Is(err, ErrRefused) {
		t.Errorf("%v", err)
	}
	address, problem = s.URL, nil
	for _, token = range []string{"a", "", "b"} {
		if err := post(t, w); err != nil {
			t.Error(err)
		}
	}
	wants(t, "tokens", fmt.Sprintf("%q", tokens), `["Bearer a" "" "Bearer b"]`)
}

// TestADispatcherDeliversToAServerThatComesBack checks all attempts with a real server: status code 500, a closed connection, and then
// status code 200.
func TestADispatcherDeliversToAServerThatComesBack(t *testing.T) {
	arrived := make(chan string, 10)
	attempts := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		attempts++
		switch attempts {
		case 1:
			w.WriteHeader(http.StatusInternalServerError)
		case 2:
			panic(http.ErrAbortHandler)
		default:
			var e Event
			if err := json.NewDecoder(r.Body).Decode(&e); err != nil {
				t.Error(err)
			}
			arrived <- e.ID
		}
	}))
	defer s.Close()
	r := newRig()
	r.Update([]Route{route("ops", NewWebhook(format("json"), text(s.URL), text("")))})
	r.Send("ops", Event{ID: "a"})
	r.Send("ops", Event{ID: "b"})
	for _, want := range []string{"a", "b"} {
		select {
		case got := <-arrived:
			wants(t, "arrived", got, want)
		case <-time.After(20 * time.Second):
			t.Fatalf("%q has not arrived", want)
		}
	}
	r.end(time.Minute)
	wants(t, "outcomes", r.outcomes(), "[ops delivered:2]")
}
