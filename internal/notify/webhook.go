package notify

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"baton/internal/notify/service"
)

const (
	// drainMost is the maximum number of bytes of an answer that are read, so that the connection can be used again.
	drainMost = 64 << 10
	// idleFor is how long an idle connection is kept.
	idleFor = 30 * time.Second
	// maxRedirects is the maximum number of redirects that are followed. All redirects must be on the same host.
	maxRedirects = 3
)

// Webhook sends HTTP requests to one address.
type Webhook struct {
	method  string
	format  service.Format
	address func() (string, error)
	token   func() (string, error)
	client  *http.Client
}

// NewWebhook returns a target that posts events in the format of a service. The target calls the functions address and token for every
// attempt. The errors of these functions must not contain a secret. If the token is "", no token is used.
func NewWebhook(f service.Format, address, token func() (string, error)) *Webhook {
	return newWebhook(http.MethodPost, f, address, token)
}

// NewPing returns a target that requests an address with GET. The content of the event is not sent.
func NewPing(address, token func() (string, error)) *Webhook {
	plain, _ := service.Find("")
	return newWebhook(http.MethodGet, plain, address, token)
}

func newWebhook(method string, format service.Format, address, token func() (string, error)) *Webhook {
	return &Webhook{method: method, format: format, address: address, token: token, client: &http.Client{
		CheckRedirect: follow,
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: 1, IdleConnTimeout: idleFor,
			MaxResponseHeaderBytes: drainMost,
		},
	}}
}

// follow follows a redirect only to the same host and with the same method. The token and the event must never be sent to another host. If
// a POST became a GET, nothing would be delivered, but the answer would look like a success.
func follow(next *http.Request, via []*http.Request) error {
	first := via[0]
	if len(via) > maxRedirects || next.URL.Host != first.URL.Host || next.URL.Scheme != first.URL.Scheme || next.Method != first.Method {
		return http.ErrUseLastResponse
	}
	return nil
}

// Send implements [Target].
func (w *Webhook) Send(ctx context.Context, e Event) error {
	address, err := w.address()
	if err != nil {
		return err
	}
	token, err := w.token()
	if err != nil {
		return err
	}
	req, err := w.request(ctx, address, token, e)
	if err != nil {
		return err
	}
	if token != "" && w.format.Secret == service.Bearer {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	if token != "" && w.format.Sign != nil {
		query := req.URL.Query()
		w.format.Sign(query, token)
		req.URL.RawQuery = query.Encode()
	}
	resp, err := w.client.Do(req)
	if err != nil {
		return unreachable(ctx, err)
	}
	defer resp.Body.Close()
	// If the answer is cut off, the important part is at the beginning, or Judge reports the answer as incomplete.
	body, _ := io.ReadAll(io.LimitReader(resp.Body, drainMost))
	return w.format.Judge(service.Answer{Status: resp.StatusCode, RetryAfter: resp.Header.Get("Retry-After"), Body: body})
}

func (w *Webhook) request(ctx context.Context, address, token string, e Event) (*http.Request, error) {
	var body io.Reader // for GET it stays a nil interface, so that there is no body at all
	if w.method == http.MethodPost {
		text, err := w.encode(e, token)
		if err != nil {
			return nil, service.Refused("encode the event: %v", err)
		}
		body = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, w.method, address, body)
	if err != nil || req.URL.Host == "" || req.URL.Scheme != "http" && req.URL.Scheme != "https" {
		return nil, errors.New("the address is not a URL; write https://host/path") // err is not returned, because it quotes the address
	}
	req.Header.Set("User-Agent", "baton")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	return req, nil
}

func (w *Webhook) encode(e Event, token string) ([]byte, error) {
	text, err := json.Marshal(e)
	if err != nil {
		return nil, err
	}
	if w.format.Secret != service.Signs {
		token = ""
	}
	return w.format.Encode(service.Message{JSON: text, Text: e.Text}, token)
}

// unreachable returns the reason why there was no answer. The errors of net/http quote the address and parts of a server's answer, which
// may also contain the address. So only errors that certainly do not contain the address are reported.
func unreachable(ctx context.Context, err error) error {
	var network *net.OpError
	var name *net.DNSError
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return errors.New("no answer in time")
	case ctx.Err() != nil:
		return errors.New("the delivery was cancelled before an answer came")
	case errors.As(err, &network):
		err = network
	case errors.As(err, &name):
		err = name
	case errors.As(err, &certificate):
		err = certificate
	case errors.Is(err, http.ErrSchemeMismatch):
		err = http.ErrSchemeMismatch
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		err = errors.New("the connection was closed")
	default:
		err = errors.New("the answer cannot be parsed; does a web server listen there?")
	}
	return fmt.Errorf("no answer: %w", err)
}
