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

// commandTimeout bounds a command's wait for a connection; twice that, for an answer.
const commandTimeout = 5 * time.Second

// Client asks a node by its API. It has no configuration and reaches no other server.
type Client struct {
	server string // as it was given
	base   string
	token  string
	http   *http.Client

	mu   sync.Mutex
	last *diagnose.Snapshot // the one before, for what nearly never changes
}

// DialServer prepares to ask the node at a URL: https://host:port, http://127.0.0.1:port or unix:///path of its admin socket. tokenFile
// holds its token, caFile the certificates to trust beside the system's; "" is none. It connects at the first question.
func DialServer(server, tokenFile, caFile string) (*Client, error) {
	u, err := url.Parse(server)
	if err != nil || u.Scheme == "" {
		const such = "https://host:9747, http://127.0.0.1:9747 or unix:///run/baton/admin.sock"
		return nil, fmt.Errorf("server %q: want a URL such as %s", server, such)
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
		return nil, fmt.Errorf("server %q: want https://host:port, http://host:port or unix:///path, and nothing more", u.Redacted())
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
	follow := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse } // do not follow: the token is for this host
	c.http = &http.Client{Transport: transport, CheckRedirect: follow}
	return c, nil
}

// isOrigin reports whether a URL names a web server, and nothing more.
func isOrigin(u *url.URL) bool {
	web := u.Scheme == "http" || u.Scheme == "https"
	return web && u.Host != "" && u.User == nil && u.RawQuery == "" && strings.Trim(u.Path, "/") == ""
}

// DialSocket prepares to ask the daemon of this host by its admin socket.
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
		return nil, fmt.Errorf("the certificates to trust: %w", err)
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s has no certificate: want PEM", file)
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool}, nil
}

// clientToken reads the token, and refuses to send it where others can read it.
func clientToken(u *url.URL, file string) (string, error) {
	token, err := ReadToken(file)
	if err != nil {
		return "", fmt.Errorf("the token: %w", err)
	}
	host := u.Hostname()
	ip := net.ParseIP(host)
	if u.Scheme == "http" && host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return "", fmt.Errorf("%w: the token is not sent to %s over http, where others can read it: use https", ErrNotAllowed, host)
	}
	return token, nil
}

// Close drops the connections.
func (c *Client) Close() error {
	c.http.CloseIdleConnections()
	return nil
}

// problem is the error that the API reported. It matches the same errors as at the node.
type problem struct {
	text    string
	kinds   []error
	outcome *Outcome
	away    bool // a server of the node is away, and will be back
}

func (p *problem) Error() string   { return p.text }
func (p *problem) Unwrap() []error { return p.kinds }

// mostReply bounds an answer.
const mostReply = 64 << 20

// get reads the JSON at a path of the API.
func get[T any](ctx context.Context, c *Client, query url.Values, path ...string) (reply T, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*commandTimeout)
	defer cancel()
	err = c.do(ctx, http.MethodGet, query, nil, &reply, path...)
	return reply, err
}

// give posts an order.
func (c *Client) give(ctx context.Context, body any, path ...string) (out Outcome, err error) {
	const within = 2*time.Minute + 10*time.Second // the node ends the order before that
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
	sent := false // the whole request; net/http repeats a POST only if no byte of it was sent
	trace := &httptrace.ClientTrace{WroteRequest: func(i httptrace.WroteRequestInfo) { sent = i.Err == nil }}
	req = req.WithContext(httptrace.WithClientTrace(ctx, trace))
	resp, err := c.http.Do(req)
	var text []byte
	if err == nil {
		defer resp.Body.Close()
		text, err = io.ReadAll(io.LimitReader(resp.Body, mostReply))
	}
	if err != nil && sent && method == http.MethodPost && ctx.Err() == nil {
		return fmt.Errorf("%w: %s: %w: %w; it may have been carried out: see baton status", ErrNoServer, c.server, errNoReply, err)
	}
	if err != nil {
		return c.unreachable(ctx, err)
	}
	if resp.StatusCode != http.StatusOK {
		return c.problem(resp, text)
	}
	if err := json.Unmarshal(text, reply); err != nil {
		return fmt.Errorf("%s answers what is not baton's: %w: is the address right?", c.server, err)
	}
	return nil
}

// unreachable says why the client could not ask the node.
func (c *Client) unreachable(ctx context.Context, err error) error {
	var unknown x509.UnknownAuthorityError
	switch {
	case ctx.Err() != nil && errors.Is(context.Cause(ctx), context.Canceled):
		return ctx.Err()
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("%w: nobody listens on %s: is baton running there?", ErrNoServer, c.server)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w: to use %s: ask as root, or as a member of %s", ErrNotAllowed, c.server,
			GroupOf(strings.TrimPrefix(c.server, "unix://")))
	case text.NoAltName(err) != "":
		return fmt.Errorf("%w: %s (%w)", ErrNoServer, text.NoAltName(err), err)
	case errors.As(err, &unknown):
		return fmt.Errorf("%w: the certificate of %s is not trusted: --ca-file names who does: %w", ErrNoServer, c.server, err)
	}
	if asked, ok := errors.AsType[*url.Error](err); ok { // it repeats the address
		err = asked.Err
	}
	switch {
	case errors.Is(err, http.ErrSchemeMismatch):
		return fmt.Errorf("%w: %s speaks no TLS: write http://", ErrNoServer, c.server)
	case errors.Is(err, io.EOF):
		return fmt.Errorf("%w: %s does not speak HTTP: is the address right?", ErrNoServer, c.server)
	}
	return fmt.Errorf("%w: %s: %w", ErrNoServer, c.server, err)
}

// problem turns the node's answer into an error that matches the same errors as at the node.
func (c *Client) problem(resp *http.Response, text []byte) error {
	var said struct {
		Error   string   `json:"error"`
		Code    string   `json:"code"`
		Outcome *Outcome `json:"outcome"`
	}
	if json.Unmarshal(text, &said) != nil || said.Error == "" {
		return fmt.Errorf("%s answers %s, and not as baton does: is the address right, and baton new enough?", c.server, resp.Status)
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
			p.text = fmt.Sprintf("%s wants its token: --token-file names the file that has it", c.server)
		}
	}
	return p
}
