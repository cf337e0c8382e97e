// Package auth identifies the caller of a request, and decides about its rights to see data and
// give orders: by the token, the sessions of browsers, and checks against requests of other sites.
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
	// FreeFailures is the number of wrong tokens that are answered at once. The count drops by one a second.
	FreeFailures = 20
	// TurnEvery is the time between two checks above that number. A request with the right
	// token queues with the others and gets its turn, so guesses lock no operator out.
	TurnEvery = 50 * time.Millisecond
	// LongestQueue bounds a request's wait for its turn, mostQueued the waiting requests of all addresses.
	LongestQueue = 8 * time.Second
	mostQueued   = int(LongestQueue / TurnEvery)
)

// Caller is the sender of a request, as far as it has proved its identity.
type Caller struct {
	How     string // the proof, such as byToken; "": none
	reader  bool   // it has the token that gives no orders
	Address string
	session *session
}

// The proofs of identity that a caller can show.
const (
	BySocket  = "the admin socket" // the file's permissions let it in
	byToken   = "the token"
	bySession = "the page" // a browser that signed in with the token
)

type callerKey struct{}

// WithCaller stores the caller in a request's context.
func WithCaller(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// CallerOf returns the caller that WithCaller stored; without one, a Caller without proof.
func CallerOf(ctx context.Context) Caller {
	c, _ := ctx.Value(callerKey{}).(Caller)
	return c
}

// Auth decides about the rights of callers, by the tokens and the sessions that began with them.
type Auth struct {
	file    string // of the token; "": no token
	log     *zap.Logger
	proxies []netip.Prefix // proxies whose X-Forwarded-Proto counts

	mu       sync.Mutex
	orders   tokenFile // its bearer sees everything and gives orders
	reads    tokenFile // its bearer sees everything
	sessions map[[sha256.Size]byte]*session

	guessers map[netip.Prefix]*guesser
	queued   int // requests that wait for their turn
}

// guesser counts the wrong tokens from one network. Each guesser has its own queue: guesses
// from one network delay no request from another.
type guesser struct {
	failures float64 // wrong tokens, less one for each second since
	at       time.Time
	turn     time.Time    // of the next check
	refused  web.Throttle // limits the log lines
}

// MostGuessers bounds the queues. All further networks share one.
const MostGuessers = 1024

// guesser returns the guesser of a request, its count brought up to date. The caller holds a.mu.
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

// Suspects returns the number of guessers in memory.
func (a *Auth) Suspects() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.guessers)
}

// left returns the count of wrong tokens at now.
func (g *guesser) left(now time.Time) float64 { return max(g.failures-now.Sub(g.at).Seconds(), 0) }

// New returns an Auth of the token in a file; "": no token.
func New(file string, log *zap.Logger) *Auth {
	return &Auth{
		file: file, log: log, orders: tokenFile{setting: "http.token_file", path: file}, reads: tokenFile{setting: "http.read_token_file"},
		sessions: map[[sha256.Size]byte]*session{}, guessers: map[netip.Prefix]*guesser{},
	}
}

// Reads adds a second token, in a file. Its bearer sees the same as the bearer of the first
// token, and gives no orders.
func (a *Auth) Reads(file string) *Auth {
	a.reads.path = file
	return a
}

// Behind trusts proxies at these addresses: their X-Forwarded-Proto describes the connection to them.
func (a *Auth) Behind(proxies []netip.Prefix) *Auth {
	a.proxies = proxies
	return a
}

// errToken refuses a wrong token.
var errToken = web.Refuse(http.StatusUnauthorized, "this is not the token in http.token_file of this node: is it "+
	"another node's, or was it changed? See the file on the node's host")

// check compares a token and logs a refusal. reader is true for the token that gives no orders.
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

// compare compares a token and counts wrong ones.
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

// await returns at once, or after many wrong tokens at the turn of this request.
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
	// ErrSignIn refuses a request without a token where it needs one.
	ErrSignIn = web.Refuse(http.StatusUnauthorized, "this takes the token: send it as Authorization: Bearer TOKEN, "+
		"or sign in on the page")
	errReader  = web.Refuse(http.StatusForbidden, "the token in http.read_token_file gives no orders: show the one in http.token_file")
	errForgery = web.Refuse(http.StatusForbidden, "this does not come from the page of this node: open the page, and do it there again")
)

// Identify returns the caller of a request. It fails if the request has a wrong token, or sends one
// over a connection that is not safe for it.
func (a *Auth) Identify(r *http.Request) (Caller, error) {
	c := Caller{Address: r.RemoteAddr}
	if OverSocket(r) {
		c.How, c.Address = BySocket, ""
		return c, nil
	}
	// Another scheme belongs to a proxy that has its own passwords and passes the header on.
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

// Holds reports whether the caller's token or session is still valid.
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

// MaySee reports whether a request may see the output of commands and the content of dead
// letters. A node without a token shows them to requests from its own host.
func (a *Auth) MaySee(r *http.Request) bool {
	if c := CallerOf(r.Context()); c.How != "" {
		return true
	}
	return a.file == "" && overLoopback(r) && !forwarded(r)
}

// MayOrder returns nil if a request may give an order, else the reason why not.
func (a *Auth) MayOrder(r *http.Request) error { return a.may(r, false) }

// MaySignOut returns nil if a request may end its session, else the reason why not. A reader may, too.
func (a *Auth) MaySignOut(r *http.Request) error { return a.may(r, true) }

// may checks a request that changes something. reader: the read-only token is enough.
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

// forwarded reports whether a request has a header that proxies add to the requests they forward.
func forwarded(r *http.Request) bool {
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-Ip", "Via"} {
		if r.Header.Get(name) != "" {
			return true
		}
	}
	return false
}
