// Package auth decides who a request comes from, and what it may see and order: the token,
// the sessions of browsers, and the checks against requests of other sites.
package auth

import (
	"context"
	"crypto/sha256"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"baton/internal/status/web"
)

const (
	// FreeFailures are the wrong tokens that are answered at once; one a second is forgotten.
	FreeFailures = 20
	// TurnEvery is how often a token is checked when there were more. The request with the
	// right one waits with the others, and has its turn: no operator is locked out.
	TurnEvery = 50 * time.Millisecond
	// LongestQueue is how long a request waits for its turn, mostQueued are how many of all addresses do.
	LongestQueue = 8 * time.Second
	mostQueued   = int(LongestQueue / TurnEvery)
)

// Caller is who a request comes from, as far as it has shown that.
type Caller struct {
	How     string // byToken and so on; "": it has shown nothing
	reader  bool   // it has shown the token that gives no orders
	Address string
	session *session
}

// The ways in which a caller has shown who it is.
const (
	BySocket  = "the admin socket" // the file's permissions let it in
	byToken   = "the token"
	bySession = "the page" // a browser that has signed in with the token
)

type callerKey struct{}

// WithCaller has a context know who its request comes from.
func WithCaller(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// CallerOf is who the request of this context comes from.
func CallerOf(ctx context.Context) Caller {
	c, _ := ctx.Value(callerKey{}).(Caller)
	return c
}

// Auth decides who may do what, by the token and the sessions that began with it.
type Auth struct {
	file    string // of the token; "": there is none
	log     *zap.Logger
	proxies []netip.Prefix // whose X-Forwarded-Proto is believed

	mu       sync.Mutex
	orders   tokenFile // whoever has this token sees everything and gives orders
	reads    tokenFile // sees everything
	sessions map[[sha256.Size]byte]*session

	guessers map[netip.Prefix]*guesser
	queued   int // requests that wait for their turn
}

// guesser are the requests from one address. Each has a queue of its own: guesses from
// one hold up no request from another.
type guesser struct {
	failures float64 // wrong tokens that are not forgotten yet
	at       time.Time
	turn     time.Time    // when the next one is checked
	refused  web.Throttle // limits the lines of the log
}

// MostGuessers have a queue of their own; all further ones share one.
const MostGuessers = 1024

// guesser is that of a request, as of now. The caller holds a.mu.
func (a *Auth) guesser(r *http.Request, now time.Time) *guesser {
	from := web.NetworkOf(r.RemoteAddr)
	if a.guessers[from] == nil && len(a.guessers) >= MostGuessers {
		maps.DeleteFunc(a.guessers, func(_ netip.Prefix, g *guesser) bool { return g.left(now) == 0 && g.turn.Before(now) })
		if len(a.guessers) >= MostGuessers {
			from = netip.Prefix{}
		}
	}
	g := a.guessers[from]
	if g == nil {
		g = &guesser{}
		a.guessers[from] = g
	}
	g.failures, g.at = g.left(now), now
	return g
}

// Suspects is how many addresses have shown a wrong token that is remembered.
func (a *Auth) Suspects() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.guessers)
}

// left is how many wrong tokens are not forgotten.
func (g *guesser) left(now time.Time) float64 { return max(g.failures-now.Sub(g.at).Seconds(), 0) }

// New returns an Auth of the token in a file; "": there is no token.
func New(file string, log *zap.Logger) *Auth {
	return &Auth{
		file: file, log: log, orders: tokenFile{setting: "http.token_file", path: file}, reads: tokenFile{setting: "http.read_token_file"},
		sessions: map[[sha256.Size]byte]*session{}, guessers: map[netip.Prefix]*guesser{},
	}
}

// Reads takes a second token, in a file, with which a caller sees what one with the first sees, and
// gives no orders.
func (a *Auth) Reads(file string) *Auth {
	a.reads.path = file
	return a
}

// Behind believes what proxies at these addresses say of the connection to them.
func (a *Auth) Behind(proxies []netip.Prefix) *Auth {
	a.proxies = proxies
	return a
}

// errToken is a token that is not the one.
var errToken = web.Refuse(http.StatusUnauthorized, "this is not the token in http.token_file of this node: is it "+
	"another node's, or was it changed? See the file on the node's host")

// check compares a token, and logs those that are wrong.
// reader: it is the one that gives no orders.
func (a *Auth) check(r *http.Request, token string) (reader bool, err error) {
	if a.file == "" {
		return false, errNoToken
	}
	reader, err = a.compare(r, token)
	if err != nil {
		a.mu.Lock()
		g := a.guesser(r, time.Now())
		a.mu.Unlock()
		g.refused.Log(func(count int) {
			a.log.Warn("a token was refused", zap.String("address", r.RemoteAddr), zap.Int("count", count), zap.Error(err))
		})
	}
	return reader, err
}

// compare counts the tokens that are wrong.
func (a *Auth) compare(r *http.Request, token string) (reader bool, err error) {
	if err := a.await(r); err != nil {
		return false, err
	}
	switch orders, reads := a.matches(token); {
	case orders:
		return false, nil
	case reads:
		return true, nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.orders.broken != nil {
		return false, web.Refuse(http.StatusServiceUnavailable, "this node cannot read its http.token_file, and refuses "+
			"every token until it can: see its log")
	}
	g := a.guesser(r, time.Now())
	g.failures = min(g.failures+1, 2*FreeFailures)
	return false, errToken
}

// await returns at once, or after many wrong tokens when this one's turn has come.
func (a *Auth) await(r *http.Request) error {
	now := time.Now()
	a.mu.Lock()
	g := a.guesser(r, now)
	if g.failures < FreeFailures {
		a.mu.Unlock()
		return nil
	}
	if g.turn.Before(now) {
		g.turn = now
	}
	wait := g.turn.Sub(now)
	if wait > LongestQueue || a.queued >= mostQueued {
		a.mu.Unlock()
		return web.Refuse(http.StatusTooManyRequests, "too many wrong tokens come from your address: try again in a "+
			"few seconds; the admin socket on the node's host takes orders meanwhile")
	}
	g.turn = g.turn.Add(TurnEvery)
	a.queued++
	a.mu.Unlock()
	defer func() {
		a.mu.Lock()
		a.queued--
		a.mu.Unlock()
	}()
	select {
	case <-time.After(wait):
		return nil
	case <-r.Context().Done():
		return web.Refuse(http.StatusServiceUnavailable, "the request was given up")
	}
}

var (
	errNoToken = web.Refuse(http.StatusForbidden, "this node takes no orders over HTTP: set http.token_file in its "+
		"configuration and restart it, or give the order on its host, by baton")
	errInsecure = web.Refuse(http.StatusForbidden, "a token is not taken over a network that can read it: use https "+
		"(http.tls in the node's configuration), or connect on the node's own host")
	// ErrSignIn is that a request shows no token where one is needed.
	ErrSignIn = web.Refuse(http.StatusUnauthorized, "this takes the token: send it as Authorization: Bearer TOKEN, "+
		"or sign in on the page")
	errReader  = web.Refuse(http.StatusForbidden, "the token in http.read_token_file gives no orders: show the one in http.token_file")
	errForgery = web.Refuse(http.StatusForbidden, "this does not come from the page of this node: open the page, and do it there again")
)

// Identify finds out who a request comes from. An error says that what it shows is wrong.
func (a *Auth) Identify(r *http.Request) (Caller, error) {
	c := Caller{Address: r.RemoteAddr}
	if OverSocket(r) {
		c.How, c.Address = BySocket, ""
		return c, nil
	}
	// Another scheme is for a proxy with passwords of its own, which hands the header on.
	if scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " "); strings.EqualFold(scheme, "Bearer") && a.file != "" {
		if !a.mayCarry(r) {
			return c, a.insecure(r)
		}
		reader, err := a.check(r, strings.TrimSpace(token))
		if err != nil {
			return c, err
		}
		c.How, c.reader = byToken, reader
		return c, nil
	}
	if s := a.session(r); s != nil {
		c.How, c.session, c.reader = bySession, s, s.reader
	}
	return c, nil
}

// Holds reports whether what let a request in would let it in still.
func (a *Auth) Holds(r *http.Request) bool {
	switch CallerOf(r.Context()).How {
	case byToken:
		_, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		orders, reads := a.matches(strings.TrimSpace(token))
		return orders || reads
	case bySession:
		return a.session(r) != nil
	}
	return true
}

// TakesToken reports whether the node has a token at all.
func (a *Auth) TakesToken() bool { return a.file != "" }

// MaySee reports whether a request is shown what commands print and what dead letters
// hold. Without a token, that is what comes from this host.
func (a *Auth) MaySee(r *http.Request) bool {
	if c := CallerOf(r.Context()); c.How != "" {
		return true
	}
	return a.file == "" && overLoopback(r) && !forwarded(r)
}

// MayOrder says why a request may not give an order; nil if it may.
func (a *Auth) MayOrder(r *http.Request) error { return a.may(r, false) }

// MaySignOut says why a request may not end its session; nil if it may. A reader may, too.
func (a *Auth) MaySignOut(r *http.Request) error { return a.may(r, true) }

// may is that of an order, or of what a reader may do, too.
func (a *Auth) may(r *http.Request, reader bool) error {
	c := CallerOf(r.Context())
	if c.How == BySocket {
		return nil
	}
	switch {
	case crossOrigin.Check(r) != nil:
		return forgery(r)
	case a.file == "":
		return errNoToken
	case !a.mayCarry(r):
		return a.insecure(r)
	case c.reader && !reader:
		return errReader
	case c.How == byToken:
		return nil
	case c.How == bySession:
		return a.notForged(r, c.session)
	}
	return ErrSignIn
}

func overLoopback(r *http.Request) bool {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	return ok && local.IP.IsLoopback()
}

// OverSocket reports whether a request came over the admin socket.
func OverSocket(r *http.Request) bool {
	_, ok := r.Context().Value(http.LocalAddrContextKey).(*net.UnixAddr)
	return ok
}

// forwarded reports whether a request comes from elsewhere, by a proxy that says so.
func forwarded(r *http.Request) bool {
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-Ip", "Via"} {
		if r.Header.Get(name) != "" {
			return true
		}
	}
	return false
}
