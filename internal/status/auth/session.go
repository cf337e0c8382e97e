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
	// SessionFor is the maximum duration of a session.
	SessionFor = 12 * time.Hour
	// SessionIdle is the maximum time between two requests of a session.
	SessionIdle = time.Hour
	// MaxSessions is the maximum number of sessions. A further session replaces the session that was idle for the longest time.
	MaxSessions = 64
	// csrfField and csrfHeader contain the secret of the session, which proves that an order comes from a page of this node.
	csrfField  = "csrf"
	csrfHeader = "X-Baton-Csrf"
)

// session is the session of a browser that signed in.
type session struct {
	began, seen time.Time
	csrf        string
	reader      bool // the session began with the read-only token
}

// SignedInNow returns the current number of sessions.
func (a *Auth) SignedInNow() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.sessions)
}

// SignedIn reports whether a request comes from a browser that signed in.
func (a *Auth) SignedIn(r *http.Request) bool { return CallerOf(r.Context()).How == bySession }

// CSRF returns the value of [csrfField] for the forms of a session. It returns "" without a session.
func (a *Auth) CSRF(r *http.Request) string {
	if s := CallerOf(r.Context()).session; s != nil {
		return s.csrf
	}
	return ""
}

// Enabled reports whether a browser can sign in over the connection of r.
func (a *Auth) Enabled(r *http.Request) bool { return a.file != "" && a.mayCarry(r) && !OverSocket(r) }

// ReadsOnly reports whether the caller may see everything but give no orders.
func (a *Auth) ReadsOnly(r *http.Request) bool { return CallerOf(r.Context()).reader }

// SignIn begins a session if the token is right, and sets the session's cookie. If it returns an error, the error is a [web.Refusal], and
// SignIn has written nothing.
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

// SignOut ends the session of a request if there is one.
func (a *Auth) SignOut(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	for _, c := range r.CookiesNamed(a.cookieName(r)) {
		delete(a.sessions, sha256.Sum256([]byte(c.Value)))
	}
	a.mu.Unlock()
	http.SetCookie(w, a.cookie(r, "", -1))
}

// cookie returns the cookie with the id of a session. Scripts cannot read the cookie, and browsers do not send it with requests from the
// pages of other sites.
func (a *Auth) cookie(r *http.Request, id string, maxAge int) *http.Cookie {
	return &http.Cookie{ //nolint:gosec // Secure wherever the browser has TLS; without it the token is taken over loopback alone
		Name: a.cookieName(r), Value: id, Path: "/", MaxAge: maxAge,
		HttpOnly: true, Secure: a.scheme(r) == "https", SameSite: http.SameSiteStrictMode,
	}
}

// cookieName returns the name of the cookie, which contains the port. Browsers do not separate cookies by port, so nodes on one host would
// otherwise overwrite each other's cookies. A browser accepts the prefix __Host- only from the host itself, over TLS.
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

// session returns the valid session of a request, or nil if there is none.
func (a *Auth) session(r *http.Request) *session {
	if a.file == "" || !a.mayCarry(r) {
		return nil
	}
	// Another server on this host may have set a cookie with the same name, which must not hide the node's cookie.
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

// makeRoom ends expired sessions. If there are MaxSessions sessions, it also ends the session that was idle for the longest time. The
// caller holds a.mu.
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

// notForged checks that an order from a browser comes from a page of this node instead of another site. It checks the origin of the request
// and the secret of the session.
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

// crossOrigin is the standard library's check against requests from other sites. It refuses a request that the browser marks as
// coming from another origin. A request without a mark comes from a program or from an old browser.
var crossOrigin http.CrossOriginProtection

// fromOwnPage reports whether the browser marks a request as coming from a page of this node. It is stricter than crossOrigin, because a
// browser adds the cookie to requests automatically. A request with a session must name its origin. A missing header is not enough, nor is
// "none", which browsers send for an address that the user typed. A request with a token in a header needs no such proof.
func fromOwnPage(r *http.Request) bool {
	site, origin := r.Header.Get("Sec-Fetch-Site"), r.Header.Get("Origin")
	said := site == "same-origin" || site == "" && origin != ""
	return said && crossOrigin.Check(r) == nil
}
