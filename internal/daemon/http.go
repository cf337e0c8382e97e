package daemon

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"go.uber.org/zap"

	"baton/internal/config"
	"baton/internal/status"
)

// serving is how page and API are served.
func (n *node) serving(h config.HTTP, encryption *certificate) status.Config {
	d := newDesk(n)
	c := status.Config{
		Source: n.snapshot, Health: n.health, Metrics: n.metrics, Logger: n.log.Named("http"), NodeID: n.id, Version: n.options.Version,
		Desk: d, Inquiry: d, Do: d.do, TokenFile: h.TokenFile, Hosts: h.Hosts,
	}
	if encryption != nil {
		encryption.log = c.Logger
		c.TLS = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: encryption.get}
	}
	return c
}

// existing are the listeners that there are.
func existing(listeners ...net.Listener) []net.Listener {
	var found []net.Listener
	for _, l := range listeners {
		if l != nil {
			found = append(found, l)
		}
	}
	return found
}

// secured checks what secures page and API before anything is served; nil: no encryption.
func secured(h config.HTTP) (*certificate, error) {
	if h.TokenFile != "" {
		if err := status.CheckToken(h.TokenFile); err != nil {
			return nil, err
		}
	}
	if h.TLS == nil || h.Listen == config.Off {
		return nil, nil
	}
	c := &certificate{files: *h.TLS, log: zap.NewNop()}
	return c, c.load()
}

// certificate is read anew when its files have changed. While they cannot be read, or do
// not go together, the last one that was good is used.
type certificate struct {
	files config.ServerTLS
	log   *zap.Logger

	mu     sync.Mutex
	pair   *tls.Certificate
	stamps [2]fileStamp
	looked time.Time
}

// fileStamp tells whether a file is another one.
type fileStamp struct {
	at   time.Time
	size int64
}

// lookAgain is how often the files are looked at.
const lookAgain = time.Second

func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.looked) > lookAgain {
		c.looked = time.Now()
		if now := c.look(); now != c.stamps {
			c.stamps = now // told once, whatever comes of it
			if err := c.load(); err != nil {
				c.log.Error("the certificate was not read anew: the old one is used", zap.Error(err))
			} else {
				c.log.Info("the certificate was read anew", zap.Time("until", c.pair.Leaf.NotAfter))
			}
		}
	}
	return c.pair, nil
}

func (c *certificate) look() (now [2]fileStamp) {
	for i, name := range []string{c.files.CertFile, c.files.KeyFile} {
		if info, err := os.Stat(name); err == nil {
			now[i] = fileStamp{info.ModTime(), info.Size()}
		}
	}
	return now
}

func (c *certificate) load() error {
	stamps := c.look()
	pair, err := tls.LoadX509KeyPair(c.files.CertFile, c.files.KeyFile)
	var path *os.PathError
	switch {
	case errors.As(err, &path):
		return fmt.Errorf("http.tls: %w", err)
	case err != nil:
		return fmt.Errorf("http.tls: cert_file %s and key_file %s cannot be used together: %w: want a certificate and its own private key, both PEM", c.files.CertFile, c.files.KeyFile, err)
	}
	c.pair, c.stamps, c.looked = &pair, stamps, time.Now()
	return nil
}
