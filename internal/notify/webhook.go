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
	// drainMost is how much of an answer is read, so that its connection can be used again.
	drainMost = 64 << 10
	// idleFor is how long a connection is kept.
	idleFor = 30 * time.Second
	// maxRedirects is how many redirects are followed, all on the same host.
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

// NewWebhook posts events in the format of a service. address and token are called for every attempt; their errors must not contain a
// secret. A token of "" is not used.
func NewWebhook(f service.Format, address, token func() (string, error)) *Webhook {
	return newWebhook(http.MethodPost, f, address, token)
}

// NewPing asks for an address with GET, whatever the event is.
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

// follow follows a redirect to the same host with the same method. Never send token or event to another host; a POST turned into a GET
// would deliver nothing and look like a success.
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
	// An answer that is cut short has its important part, or Judge finds it incomplete.
	body, _ := io.ReadAll(io.LimitReader(resp.Body, drainMost))
	return w.format.Judge(service.Answer{Status: resp.StatusCode, RetryAfter: resp.Header.Get("Retry-After"), Body: body})
}

func (w *Webhook) request(ctx context.Context, address, token string, e Event) (*http.Request, error) {
	var body io.Reader // a nil interface for GET: no body at all
	if w.method == http.MethodPost {
		text, err := w.encode(e, token)
		if err != nil {
			return nil, service.Refused("encode the event: %v", err)
		}
		body = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, w.method, address, body)
	if err != nil || req.URL.Host == "" || req.URL.Scheme != "http" && req.URL.Scheme != "https" {
		return nil, errors.New("the address is no URL; want https://host/path") // err quotes it
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

// unreachable explains why there was no answer. The errors of net/http quote the address, and parts of a server's answer; that may
// contain the address, too. So only errors that certainly do not are reported.
func unreachable(ctx context.Context, err error) error {
	var network *net.OpError
	var name *net.DNSError
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return errors.New("no answer in time")
	case ctx.Err() != nil:
		return errors.New("no answer before the delivery was broken off")
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
