package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"
)

const (
	// SessionFor is how long somebody stays signed in.
	SessionFor = 12 * time.Hour
	// SessionIdle is how long one lasts without a request.
	SessionIdle = time.Hour
	// MaxSessions are as many browsers; the one that was silent longest makes room.
	MaxSessions = 64
	// csrfField and csrfHeader carry what shows that an order comes from the page.
	csrfField  = "csrf"
	csrfHeader = "X-Baton-Csrf"
)

// session is a browser that has signed in.
type session struct {
	began, seen time.Time
	csrf        string
	reader      bool // it began with the token that gives no orders
}

// SignedInNow is how many browsers are signed in.
func (a *Auth) SignedInNow() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.sessions)
}

// SignedIn reports whether a request comes from a browser that has signed in.
func (a *Auth) SignedIn(r *http.Request) bool { return CallerOf(r.Context()).How == bySession }

// CSRF is what every form of a session carries in [csrfField]; "" without a session.
func (a *Auth) CSRF(r *http.Request) string {
	if s := CallerOf(r.Context()).session; s != nil {
		return s.csrf
	}
	return ""
}

// Enabled reports whether one can sign in on the connection of r.
func (a *Auth) Enabled(r *http.Request) bool { return a.file != "" && a.mayCarry(r) && !OverSocket(r) }

// ReadsOnly reports whether a request comes from who may see everything, and give no orders.
func (a *Auth) ReadsOnly(r *http.Request) bool { return CallerOf(r.Context()).reader }

// SignIn begins a session if the token is right, and sets its cookie. An error is a
// [refusal]; then nothing was written.
func (a *Auth) SignIn(w http.ResponseWriter, r *http.Request, token string) error {
	switch {
	case a.file == "":
		return errNoToken
	case !a.mayCarry(r):
		return a.insecure(r)
	case !fromOwnPage(r):
		return forgery(r)
	}
	reader, err := a.check(r, strings.TrimSpace(token))
	if err != nil {
		return err
	}
	id, now := rand.Text(), time.Now()
	s := &session{began: now, seen: now, csrf: rand.Text(), reader: reader}
	a.mu.Lock()
	a.makeRoom(now)
	a.sessions[sha256.Sum256([]byte(id))] = s
	a.mu.Unlock()
	http.SetCookie(w, a.cookie(r, id, int(SessionFor.Seconds())))
	return nil
}

// SignOut ends the session of a request, if it has one.
func (a *Auth) SignOut(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	for _, c := range r.CookiesNamed(a.cookieName(r)) {
		delete(a.sessions, sha256.Sum256([]byte(c.Value)))
	}
	a.mu.Unlock()
	http.SetCookie(w, a.cookie(r, "", -1))
}

// cookie holds a session's id. Scripts cannot read it, and no other site's page sends it.
func (a *Auth) cookie(r *http.Request, id string, maxAge int) *http.Cookie {
	return &http.Cookie{ //nolint:gosec // Secure wherever the browser has TLS; without it the token is taken over loopback alone
		Name: a.cookieName(r), Value: id, Path: "/", MaxAge: maxAge,
		HttpOnly: true, Secure: a.scheme(r) == "https", SameSite: http.SameSiteStrictMode,
	}
}

// cookieName has the port, which cookies do not tell apart: nodes of one host would take
// one another's. A browser takes a name of __Host- from the host alone, over TLS.
func (a *Auth) cookieName(r *http.Request) string {
	name := "baton"
	if local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr); ok {
		name = fmt.Sprintf("baton-%d", local.Port)
	}
	if a.scheme(r) == "https" {
		name = "__Host-" + name
	}
	return name
}

// session is that of a request; nil if it has none that is good.
func (a *Auth) session(r *http.Request) *session {
	if a.file == "" || !a.mayCarry(r) {
		return nil
	}
	// Another server of this host may have set one of that name: it must not hide ours.
	cookies := r.CookiesNamed(a.cookieName(r))
	if len(cookies) == 0 {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.refresh()
	now := time.Now()
	for _, c := range cookies {
		id := sha256.Sum256([]byte(c.Value))
		switch s := a.sessions[id]; {
		case s == nil:
		case s.over(now):
			delete(a.sessions, id)
		default:
			s.seen = now
			return s
		}
	}
	return nil
}

func (s *session) over(now time.Time) bool {
	return now.Sub(s.began) > SessionFor || now.Sub(s.seen) > SessionIdle
}

// makeRoom ends sessions that are over, and if need be the one that was silent longest.
// The caller holds a.mu.
func (a *Auth) makeRoom(now time.Time) {
	var oldest [sha256.Size]byte
	var since time.Time
	for id, s := range a.sessions {
		if s.over(now) {
			delete(a.sessions, id)
		} else if since.IsZero() || s.seen.Before(since) {
			oldest, since = id, s.seen
		}
	}
	if len(a.sessions) >= MaxSessions {
		delete(a.sessions, oldest)
	}
}

// notForged says why an order that a browser sends may be somebody else's will.
func (a *Auth) notForged(r *http.Request, s *session) error {
	sent := r.Header.Get(csrfHeader)
	if sent == "" && strings.HasPrefix(r.Header.Get("Content-Type"), "application/x-www-form-urlencoded") {
		sent = r.PostFormValue(csrfField)
	}
	if !fromOwnPage(r) || subtle.ConstantTimeCompare([]byte(sent), []byte(s.csrf)) != 1 {
		return forgery(r)
	}
	return nil
}

// crossOrigin is the standard library's check: it refuses what a browser says comes from
// another origin. What says nothing is no browser, or an old one.
var crossOrigin http.CrossOriginProtection

// fromOwnPage reports whether a browser says that a request comes from a page of this node.
// That is more than crossOrigin asks: a browser sends its cookie by itself, so a request that
// lives on a session must say where it comes from, and neither silence nor an address that a
// user has typed ("none") says so. A token in a header is proof enough without it.
func fromOwnPage(r *http.Request) bool {
	site, origin := r.Header.Get("Sec-Fetch-Site"), r.Header.Get("Origin")
	said := site == "same-origin" || site == "" && origin != ""
	return said && crossOrigin.Check(r) == nil
}
