// Package certificate loads the TLS certificate of the status page and the API, and reloads the certificate when its files change.
package certificate

import (
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"go.uber.org/zap"

	"baton/internal/config"
)

// Certificate is a certificate that is reloaded when its files have changed. If the files cannot be read, or if key and certificate do not
// match, the last valid pair stays in use.
type Certificate struct {
	files config.ServerTLS
	log   *zap.Logger

	mu     sync.Mutex
	pair   *tls.Certificate
	stamps [2]fileStamp
	looked time.Time
	warned string // the last logged warning about the certificate's validity
}

// fileStamp shows whether a file has changed.
type fileStamp struct {
	at   time.Time
	size int64
}

// Open reads the certificate that the configuration names. It returns nil if the configuration names no certificate.
func Open(h config.HTTP) (*Certificate, error) {
	if h.TLS == nil || h.Listen == config.Off {
		return nil, nil
	}
	c := &Certificate{files: *h.TLS, log: zap.NewNop()}
	return c, c.load()
}

// Serve returns the settings for a listener that uses the certificate.
func (c *Certificate) Serve(log *zap.Logger) *tls.Config {
	c.log = log
	c.warn()
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: c.get}
}

// lookAgain is the minimum time between two checks of the files.
const lookAgain = time.Second

func (c *Certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.looked) > lookAgain {
		c.looked = time.Now()
		if now := c.look(); now != c.stamps {
			c.stamps = now // so that each change is logged only once, even if the files cannot be loaded
			if err := c.load(); err != nil {
				c.log.Error("cannot reload the certificate: the old one stays in use", zap.Error(err))
			} else {
				c.log.Info("the certificate was read anew", zap.Time("until", c.pair.Leaf.NotAfter))
			}
		}
		c.warn()
	}
	return c.pair, nil
}

func (c *Certificate) look() (now [2]fileStamp) {
	for i, name := range []string{c.files.CertFile, c.files.KeyFile} {
		if info, err := os.Stat(name); err == nil {
			now[i] = fileStamp{info.ModTime(), info.Size()}
		}
	}
	return now
}

func (c *Certificate) load() error {
	stamps := c.look()
	pair, err := tls.LoadX509KeyPair(c.files.CertFile, c.files.KeyFile)
	var path *os.PathError
	switch {
	case errors.As(err, &path):
		return fmt.Errorf("http.tls: %w", err)
	case err != nil:
		return fmt.Errorf("http.tls: cert_file %s and key_file %s cannot be used together: %w: "+
			"give a certificate and its own private key as PEM files", c.files.CertFile, c.files.KeyFile, err)
	}
	c.pair, c.stamps, c.looked = &pair, stamps, time.Now()
	return nil
}

// Ends returns a text that says why clients refuse the certificate, or will refuse it soon. It returns "" if clients accept the
// certificate. Soon means the last tenth of the certificate's validity, but at most 14 days, because a renewal should be done by then.
func (c *Certificate) Ends(now time.Time) (what string, refused bool) {
	const soon, tenth, day = 14 * 24 * time.Hour, 10, "2006-01-02 15:04 UTC"
	leaf := c.pair.Leaf
	name, left := "the certificate in "+c.files.CertFile, leaf.NotAfter.Sub(now)
	switch {
	case left <= 0:
		return name + " has expired: " + leaf.NotAfter.UTC().Format(day), true
	case now.Before(leaf.NotBefore):
		return name + " is not valid before " + leaf.NotBefore.UTC().Format(day), true
	case left < min(soon, leaf.NotAfter.Sub(leaf.NotBefore)/tenth):
		return name + " expires soon: " + leaf.NotAfter.UTC().Format(day), false
	}
	return "", false
}

// warn logs a warning if the certificate is not valid or expires soon. It logs each warning only once.
func (c *Certificate) warn() {
	what, _ := c.Ends(time.Now())
	if what != "" && what != c.warned {
		c.log.Warn(what+". Replace the certificate files with renewed ones: baton reads them without a restart",
			zap.String("setting", "http.tls"))
	}
	c.warned = what
}
