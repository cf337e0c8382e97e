package operate

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"baton/internal/diagnose"
	"baton/internal/text"
)

// commandTimeout limits how long a command waits for a connection. The time for the answer is twice as long.
const commandTimeout = 5 * time.Second

// Client asks a node through the node's API. It has no configuration and connects to no other server.
type Client struct {
	server string // the address as the user gave it
	base   string
	token  string
	http   *http.Client

	mu   sync.Mutex
	last *diagnose.Snapshot // the previous Snapshot, for data that rarely changes
}

// DialServer returns a client of the node at a URL: https://host:port, http://127.0.0.1:port or unix:///path of its admin socket. tokenFile
// contains the node's token, and caFile contains certificates to trust in addition to the system's. "" means no file. The client connects
// at its first request.
func DialServer(server, tokenFile, caFile string) (*Client, error) {
	u, err := url.Parse(server)
	if err != nil || u.Scheme == "" {
		const such = "https://host:9747, http://127.0.0.1:9747 or unix:///run/baton/admin.sock"
		return nil, fmt.Errorf("server %q: write a URL such as %s", server, such)
	}
	c := &Client{server: server}
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, IdleConnTimeout: 10 * time.Second, TLSHandshakeTimeout: commandTimeout}
	dial := net.Dialer{Timeout: commandTimeout}
	transport.DialContext = dial.DialContext
	switch {
	case u.Scheme == "unix" && u.Path != "" && u.Host == "":
		c.base = "http://baton"
		transport.Proxy = nil
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) { return dial.DialContext(ctx, "unix", u.Path) }
	case isOrigin(u):
		c.base = u.Scheme + "://" + u.Host
	default:
		return nil, fmt.Errorf("server %q: write only https://host:port, http://host:port or unix:///path", u.Redacted())
	}
	if caFile != "" {
		if transport.TLSClientConfig, err = trusting(caFile); err != nil {
			return nil, err
		}
	}
	if tokenFile != "" {
		if c.token, err = clientToken(u, tokenFile); err != nil {
			return nil, err
		}
	}
	follow := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse } // no redirect: the token is for this host
	c.http = &http.Client{Transport: transport, CheckRedirect: follow}
	return c, nil
}

// isOrigin reports whether a URL names a web server without a path.
func isOrigin(u *url.URL) bool {
	web := u.Scheme == "http" || u.Scheme == "https"
	return web && u.Host != "" && u.User == nil && u.RawQuery == "" && strings.Trim(u.Path, "/") == ""
}

// DialSocket returns a client of this host's daemon that uses the daemon's admin socket.
func DialSocket(path string) (*Client, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("socket %q: %w", path, err)
	}
	return DialServer((&url.URL{Scheme: "unix", Path: path}).String(), "", "")
}

func trusting(file string) (*tls.Config, error) {
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the certificates to trust: %w", err)
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s contains no certificate in PEM form", file)
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool}, nil
}

// clientToken reads the token. It returns an error if others could read the token on the way to the node.
func clientToken(u *url.URL, file string) (string, error) {
	token, err := ReadToken(file)
	if err != nil {
		return "", fmt.Errorf("read the token: %w", err)
	}
	host := u.Hostname()
	ip := net.ParseIP(host)
	if u.Scheme == "http" && host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return "", fmt.Errorf("%w: the token is not sent to %s over http, where others can read it: use https", ErrNotAllowed, host)
	}
	return token, nil
}

// Close closes the connections.
func (c *Client) Close() error {
	c.http.CloseIdleConnections()
	return nil
}

// problem is the error that the API reported. It matches the same errors as the error at the node.
type problem struct {
	text    string
	kinds   []error
	outcome *Outcome
	away    bool // the node cannot reach a server at the moment
}

func (p *problem) Error() string   { return p.text }
func (p *problem) Unwrap() []error { return p.kinds }

// mostReply is the maximum size of an answer, in bytes.
const mostReply = 64 << 20

// get reads JSON from a path of the API.
func get[T any](ctx context.Context, c *Client, query url.Values, path ...string) (reply T, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*commandTimeout)
	defer cancel()
	err = c.do(ctx, http.MethodGet, query, nil, &reply, path...)
	return reply, err
}

// give sends an order to the API with POST.
func (c *Client) give(ctx context.Context, body any, path ...string) (out Outcome, err error) {
	const within = 2*time.Minute + 10*time.Second // the node ends the order earlier
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	text, err := json.Marshal(body)
	if err != nil {
		return out, err
	}
	err = c.do(ctx, http.MethodPost, nil, text, &out, path...)
	var p *problem
	if errors.As(err, &p) && p.outcome != nil {
		out = *p.outcome
	}
	return out, err
}

func (c *Client) do(ctx context.Context, method string, query url.Values, body []byte, reply any, path ...string) error {
	parts := []string{c.base + "/api/v1"}
	for _, part := range path {
		parts = append(parts, url.PathEscape(part))
	}
	address := strings.Join(parts, "/")
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	sent := false // whether the whole request was sent; net/http repeats a POST only if it has sent no byte of the request
	trace := &httptrace.ClientTrace{WroteRequest: func(i httptrace.WroteRequestInfo) { sent = i.Err == nil }}
	req = req.WithContext(httptrace.WithClientTrace(ctx, trace))
	resp, err := c.http.Do(req)
	var text []byte
	if err == nil {
		defer resp.Body.Close()
		text, err = io.ReadAll(io.LimitReader(resp.Body, mostReply))
	}
	if err != nil && sent && method == http.MethodPost && ctx.Err() == nil {
		return fmt.Errorf("%w: %s: %w: %w; the order may have been carried out: see baton status", ErrNoServer, c.server, errNoReply, err)
	}
	if err != nil {
		return c.unreachable(ctx, err)
	}
	if resp.StatusCode != http.StatusOK {
		return c.problem(resp, text)
	}
	if err := json.Unmarshal(text, reply); err != nil {
		return fmt.Errorf("the answer of %s is not an answer of baton: %w: is the address right?", c.server, err)
	}
	return nil
}

// unreachable returns the error that says why the client could not reach the node.
func (c *Client) unreachable(ctx context.Context, err error) error {
	var unknown x509.UnknownAuthorityError
	switch {
	case ctx.Err() != nil && errors.Is(context.Cause(ctx), context.Canceled):
		return ctx.Err()
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("%w: no program listens on %s: is baton running there?", ErrNoServer, c.server)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w to use %s: run the command as root, or as a member of %s", ErrNotAllowed, c.server,
			GroupOf(strings.TrimPrefix(c.server, "unix://")))
	case text.NoAltName(err) != "":
		return fmt.Errorf("%w: %s (%w)", ErrNoServer, text.NoAltName(err), err)
	case errors.As(err, &unknown):
		return fmt.Errorf("%w: the certificate of %s is not trusted: pass its CA with --ca-file: %w", ErrNoServer, c.server, err)
	}
	if asked, ok := errors.AsType[*url.Error](err); ok { // the error repeats the address
		err = asked.Err
	}
	switch {
	case errors.Is(err, http.ErrSchemeMismatch):
		return fmt.Errorf("%w: %s does not speak TLS: write http://", ErrNoServer, c.server)
	case errors.Is(err, io.EOF):
		return fmt.Errorf("%w: %s does not speak HTTP: is the address right?", ErrNoServer, c.server)
	}
	return fmt.Errorf("%w: %s: %w", ErrNoServer, c.server, err)
}

// problem returns the node's answer as an error that matches the same errors as the error at the node.
func (c *Client) problem(resp *http.Response, text []byte) error {
	var said struct {
		Error   string   `json:"error"`
		Code    string   `json:"code"`
		Outcome *Outcome `json:"outcome"`
	}
	if json.Unmarshal(text, &said) != nil || said.Error == "" {
		return fmt.Errorf("%s answers %s, which is not an answer of baton: is the address right, and is baton there new enough?",
			c.server, resp.Status)
	}
	p := &problem{text: said.Error, outcome: said.Outcome, away: resp.StatusCode == http.StatusServiceUnavailable}
	for _, k := range known() {
		if k.Code == said.Code {
			p.kinds = append(p.kinds, k.Err)
		}
	}
	switch resp.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests:
		p.kinds = append(p.kinds, ErrNotAllowed)
		p.text = c.server + ": " + said.Error
		if c.token == "" && resp.StatusCode == http.StatusUnauthorized {
			p.text = fmt.Sprintf("%s requires its token: write --token-file FILE", c.server)
		}
	}
	return p
}
