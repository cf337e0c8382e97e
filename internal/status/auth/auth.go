// Package auth identifies the caller of a request, and decides whether the caller may see data and give orders.
//
//	Auth     the tokens and the sessions of a node
//	Caller   the sender of a request, with its proof of identity: the admin socket, a token, or a session
//	session  a browser that signed in with a token: a cookie, and a secret for its forms (CSRF)
//	guesser  the count of wrong tokens from one network
//
// Two tokens come from files. The token in http.token_file gives orders, and the token in http.read_token_file only reads. When a file has
// changed, Auth reads it again, and the sessions of the old token end.
//
// The invariants:
//
//   - A token is accepted only over a connection that others cannot read: TLS, or a connection inside of this host. The memory contains
//     only the token's checksum.
//   - An order from a browser needs the secret of the browser's session, and must come from a page of this node. So another site cannot
//     give an order.
//   - Wrong tokens from one network make further checks for that network slower, but delay no other network. A request with the right token
//     waits in the same queue, and is accepted.
//   - The numbers of sessions, networks and waiting requests are limited.
//
// Failures: without http.token_file no order is accepted over HTTP, but the admin socket still accepts orders. While the file of a token
// cannot be read, every request with a token is refused, and the log says so.
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
	// FreeFailures is the number of wrong tokens that are answered without delay. The count of wrong tokens drops by one per second.
	FreeFailures = 20
	// TurnEvery is the interval between two token checks after FreeFailures or more wrong tokens. A request with the right token
	// waits in the same queue and gets its turn, so an attacker who guesses tokens cannot lock out an operator.
	TurnEvery = 50 * time.Millisecond
	// LongestQueue is the maximum time that a request waits for its turn. mostQueued is the maximum number of waiting requests of all
	// addresses.
	LongestQueue = 8 * time.Second
	mostQueued   = int(LongestQueue / TurnEvery)
)

// Caller is the sender of a request, and says which identity the sender has proved.
type Caller struct {
	How     string // the proof, such as byToken; "" means no proof
	reader  bool   // the caller has only the read-only token
	Address string
	session *session
}

// These are the proofs of identity that a caller can show.
const (
	BySocket  = "the admin socket" // the permissions of the socket's file admit the caller
	byToken   = "the token"
	bySession = "the page" // a browser that signed in with the token
)

type callerKey struct{}

// WithCaller stores the caller in a request's context.
func WithCaller(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// CallerOf returns the caller that WithCaller stored. If there is none, it returns a Caller without proof.
func CallerOf(ctx context.Context) Caller {
	c, _ := ctx.Value(callerKey{}).(Caller)
	return c
}

// Auth decides about the rights of callers, based on the tokens and on the sessions that began with a token.
type Auth struct {
	file    string // the file of the token; "" means no token
	log     *zap.Logger
	proxies []netip.Prefix // proxies whose X-Forwarded-Proto counts

	mu       sync.Mutex
	orders   tokenFile // a caller with this token may see everything and give orders
	reads    tokenFile // a caller with this token may see everything
	sessions map[[sha256.Size]byte]*session

	guessers map[netip.Prefix]*guesser
	queued   int // the number of requests that wait for their turn
}

// guesser counts the wrong tokens from one network. Each guesser has its own queue, so that wrong tokens from one network delay no request
// from another network.
type guesser struct {
	failures float64 // the number of wrong tokens, less one for each second since
	at       time.Time
	turn     time.Time    // the time of the next check
	refused  web.Throttle // limits the log lines
}

// MostGuessers is the maximum number of guessers with their own queue. All further networks share one guesser.
const MostGuessers = 1024

// guesser returns the guesser for a request, and updates its count of wrong tokens. The caller holds a.mu.
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

// left returns the count of wrong tokens at the time now. The count drops by one per second.
func (g *guesser) left(now time.Time) float64 { return max(g.failures-now.Sub(g.at).Seconds(), 0) }

// New returns an Auth that reads the token from a file. The file "" means that there is no token.
func New(file string, log *zap.Logger) *Auth {
	return &Auth{
		file: file, log: log, orders: tokenFile{setting: "http.token_file", path: file}, reads: tokenFile{setting: "http.read_token_file"},
		sessions: map[[sha256.Size]byte]*session{}, guessers: map[netip.Prefix]*guesser{},
	}
}

// Reads adds a second token, from another file. A caller with this token may see the same as a caller with the first token, but cannot give
// orders.
func (a *Auth) Reads(file string) *Auth {
	a.reads.path = file
	return a
}

// Behind makes Auth trust the proxies at these addresses. Their header X-Forwarded-Proto describes the connection from the browser
// to the proxy.
func (a *Auth) Behind(proxies []netip.Prefix) *Auth {
	a.proxies = proxies
	return a
}

// errToken is the error for a wrong token.
var errToken = web.Refuse(http.StatusUnauthorized, "this is not the token in http.token_file of this node: is it "+
	"another node's, or was it changed? See the file on the node's host")

// check compares a token with the node's tokens, and logs a refusal. The result reader is true for the read-only token.
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

// compare compares a token with the node's tokens, and counts wrong tokens.
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
			"every token until it can read the file: see its log")
	}
	g := a.guesser(r, time.Now())
	g.failures = min(g.failures+1, 2*FreeFailures)
	return false, errToken
}

// await returns immediately if few wrong tokens have come from the network of the request. Otherwise it waits until the request gets
// its turn.
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
		return web.Refuse(http.StatusTooManyRequests, "too many wrong tokens came from your address: try again in a "+
			"few seconds; the admin socket on the node's host still accepts orders")
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
		return web.Refuse(http.StatusServiceUnavailable, "the client cancelled the request")
	}
}

var (
	errNoToken = web.Refuse(http.StatusForbidden, "this node takes no orders over HTTP: set http.token_file in its "+
		"configuration and restart it, or give the order on its host, by baton")
	errInsecure = web.Refuse(http.StatusForbidden, "this node accepts no token over a network that can read it: use https "+
		"(http.tls in the node's configuration), or connect on the node's own host")
	// ErrSignIn is the error for a request without a token where a token is needed.
	ErrSignIn = web.Refuse(http.StatusUnauthorized, "this request needs the token: send it as Authorization: Bearer TOKEN, "+
		"or sign in on the page")
	errReader = web.Refuse(http.StatusForbidden, "the token in http.read_token_file does not allow orders: use the token in "+
		"http.token_file")
	errForgery = web.Refuse(http.StatusForbidden, "this request does not come from the page of this node: "+
		"open the page, and do it there again")
)

// Identify returns the caller of a request. It returns an error if the token is wrong, or if the connection is not safe for a token.
func (a *Auth) Identify(r *http.Request) (Caller, error) {
	c := Caller{Address: r.RemoteAddr}
	if OverSocket(r) {
		c.How, c.Address = BySocket, ""
		return c, nil
	}
	// Another scheme belongs to a proxy that has its own passwords and forwards the header.
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

// TakesToken reports whether the node has a token.
func (a *Auth) TakesToken() bool { return a.file != "" }

// MaySee reports whether the caller may see the output of commands and the content of dead letters. A node without a token shows them to
// requests from its own host.
func (a *Auth) MaySee(r *http.Request) bool {
	if c := CallerOf(r.Context()); c.How != "" {
		return true
	}
	return a.file == "" && overLoopback(r) && !forwarded(r)
}

// MayOrder returns nil if the caller may give an order, otherwise the reason why not.
func (a *Auth) MayOrder(r *http.Request) error { return a.may(r, false) }

// MaySignOut returns nil if the caller may end its session, otherwise the reason why not. A caller with the read-only token may also sign
// out.
func (a *Auth) MaySignOut(r *http.Request) error { return a.may(r, true) }

// may checks a request that changes something. If the argument reader is true, the read-only token is enough.
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

// forwarded reports whether a request has a header that proxies add to the requests that they forward.
func forwarded(r *http.Request) bool {
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-Ip", "Via"} {
		if r.Header.Get(name) != "" {
			return true
		}
	}
	return false
}
