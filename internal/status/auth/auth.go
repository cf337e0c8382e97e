// Package auth decides who a request comes from, and what it may see and order: the token,
// the sessions of browsers, and the checks against requests of other sites.
package auth

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"baton/internal/operate"
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
	file string // of the token; "": there is none
	log  *zap.Logger

	mu       sync.Mutex
	looked   fileState // the file when it was read
	token    [sha256.Size]byte
	broken   error // why there is no token now
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

// fileState identifies a version of a file.
type fileState struct {
	at   time.Time
	size int64
	info os.FileInfo
}

// New returns an Auth of the token in a file; "": there is no token.
func New(file string, log *zap.Logger) *Auth {
	return &Auth{file: file, log: log, sessions: map[[sha256.Size]byte]*session{}, guessers: map[netip.Prefix]*guesser{}}
}

// CheckToken says what is wrong with the token in a file.
func CheckToken(file string) error {
	_, err := readToken(file)
	return err
}

func readToken(file string) (sum [sha256.Size]byte, err error) {
	token, err := operate.ReadToken(file)
	if err != nil {
		return sum, fmt.Errorf("http.token_file: %w", err)
	}
	return sha256.Sum256([]byte(token)), nil
}

// refresh reads the token again if its file has changed. Sessions of another token end.
// The caller holds a.mu.
func (a *Auth) refresh() {
	info, err := os.Stat(a.file)
	if err == nil && a.looked.info != nil && os.SameFile(info, a.looked.info) && info.ModTime().Equal(a.looked.at) &&
		info.Size() == a.looked.size {
		return
	}
	var sum [sha256.Size]byte
	if err == nil {
		sum, err = readToken(a.file)
	}
	if err != nil {
		if a.broken == nil {
			a.log.Error("the token cannot be read: requests with a token are refused until it can", zap.Error(err))
		}
		a.broken, a.looked, a.token = err, fileState{}, sum
		clear(a.sessions)
		return
	}
	if sum != a.token {
		clear(a.sessions)
	}
	a.broken, a.token, a.looked = nil, sum, fileState{at: info.ModTime(), size: info.Size(), info: info}
}

// matches compares a token, in the same time whatever it is.
func (a *Auth) matches(token string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.refresh()
	sum := sha256.Sum256([]byte(token))
	return subtle.ConstantTimeCompare(sum[:], a.token[:]) == 1 && a.broken == nil
}

// errToken is a token that is not the one.
var errToken = web.Refuse(http.StatusUnauthorized, "this is not the token in http.token_file of this node: is it "+
	"another node's, or was it changed? See the file on the node's host")

// check compares a token, and logs those that are wrong.
func (a *Auth) check(r *http.Request, token string) error {
	if a.file == "" {
		return errNoToken
	}
	err := a.compare(r, token)
	if err != nil {
		a.mu.Lock()
		g := a.guesser(r, time.Now())
		a.mu.Unlock()
		g.refused.Log(func(count int) {
			a.log.Warn("a token was refused", zap.String("address", r.RemoteAddr), zap.Int("count", count), zap.Error(err))
		})
	}
	return err
}

// compare counts the tokens that are wrong.
func (a *Auth) compare(r *http.Request, token string) error {
	if err := a.await(r); err != nil {
		return err
	}
	if a.matches(token) {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.broken != nil {
		return web.Refuse(http.StatusServiceUnavailable, "this node cannot read its http.token_file, and refuses "+
			"every token until it can: see its log")
	}
	g := a.guesser(r, time.Now())
	g.failures = min(g.failures+1, 2*FreeFailures)
	return errToken
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
		if !mayCarry(r) {
			return c, errInsecure
		}
		if err := a.check(r, strings.TrimSpace(token)); err != nil {
			return c, err
		}
		c.How = byToken
		return c, nil
	}
	if s := a.session(r); s != nil {
		c.How, c.session = bySession, s
	}
	return c, nil
}

// Holds reports whether what let a request in would let it in still.
func (a *Auth) Holds(r *http.Request) bool {
	switch CallerOf(r.Context()).How {
	case byToken:
		_, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		return a.matches(strings.TrimSpace(token))
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
func (a *Auth) MayOrder(r *http.Request) error {
	c := CallerOf(r.Context())
	if c.How == BySocket {
		return nil
	}
	switch {
	case crossOrigin.Check(r) != nil:
		return errForgery
	case a.file == "":
		return errNoToken
	case !mayCarry(r):
		return errInsecure
	case c.How == byToken:
		return nil
	case c.How == bySession:
		return a.notForged(r, c.session)
	}
	return ErrSignIn
}

// mayCarry reports whether a connection is safe for the token: encrypted, or inside this host.
func mayCarry(r *http.Request) bool { return r.TLS != nil || overLoopback(r) || OverSocket(r) }

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
