package redislock_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"baton/internal/elector"
	"baton/internal/redisconn"
	"baton/internal/redislock"
	"baton/internal/testsupport"
)

func always(c *tls.Config) func() (*tls.Config, error) {
	return func() (*tls.Config, error) { return c, nil }
}

func TestTLSWorksForEveryDeployment(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(t *testing.T) redisconn.Options{
		"TLS": func(t *testing.T) redisconn.Options {
			r := testsupport.StartRedis(t, testsupport.RedisTLS(false), testsupport.RedisPassword("treasure"))
			return redisconn.Options{URL: r.URL(), TLS: always(r.TLSConfig())}
		},
		"mTLS": func(t *testing.T) redisconn.Options {
			r := testsupport.StartRedis(t, testsupport.RedisTLS(true), testsupport.RedisPassword("treasure"))
			return redisconn.Options{URL: strings.Replace(r.URL(), "rediss", "valkeys", 1), TLS: always(r.TLSConfig())}
		},
		"Sentinel": func(t *testing.T) redisconn.Options {
			s := testsupport.StartSentinel(t, testsupport.RedisTLS(true), testsupport.RedisPassword("treasure"))
			return redisconn.Options{TLS: always(s.Master().TLSConfig()), Sentinel: &redisconn.SentinelOptions{Master: s.Name(),
				Addresses: s.Addresses()}}
		},
		"Cluster": func(t *testing.T) redisconn.Options {
			c := testsupport.StartCluster(t, testsupport.RedisTLS(true), testsupport.RedisPassword("treasure"))
			return redisconn.Options{TLS: always(c.Nodes()[0].TLSConfig()), Cluster: c.Addresses()[:1]}
		},
		"Unix socket": func(t *testing.T) redisconn.Options {
			r := testsupport.StartRedis(t, testsupport.RedisUnix(), testsupport.RedisPassword("treasure"))
			return redisconn.Options{URL: r.SocketURL() + "?db=2"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := start(t)
			o.Password = secret("treasure")
			s := openWith(t, o)
			a := campaign(t, s, redislock.LockOptions{Key: "baton", NodeID: "a", TTL: 15 * time.Second})
			a.term(t)
			testsupport.AwaitNoError(t, "the node watches", func() error { return a.heard(0) })
		})
	}
}

// Certificates are read at every dial, so that a renewed certificate needs no restart.
func TestCertificatesAreAskedForAtEveryDial(t *testing.T) {
	t.Parallel()
	r := testsupport.StartRedis(t, testsupport.RedisTLS(true))
	var now atomic.Pointer[tls.Config]
	old := r.TLSConfig()
	old.Certificates = nil
	now.Store(old)
	s := openWith(t, redisconn.Options{URL: r.URL(), TLS: func() (*tls.Config, error) { return now.Load(), nil }})
	if _, err := redisDo(t, s, "SET", "x", "1"); err == nil {
		t.Fatal("a client without a certificate was accepted")
	}
	now.Store(r.TLSConfig())
	if _, err := redisDo(t, s, "SET", "x", "1"); err != nil {
		t.Errorf("with the new certificate: %v", err)
	}
	s = openWith(t, redisconn.Options{URL: r.URL(), TLS: func() (*tls.Config, error) { return nil, errors.New("no such file") }})
	if _, err := redisDo(t, s, "SET", "x", "1"); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("without the files: %v", err)
	}
}

func TestWhatIsWrongWithTLSIsExplained(t *testing.T) {
	t.Parallel()
	plain := testsupport.StartRedis(t)
	encrypted := testsupport.StartRedis(t, testsupport.RedisTLS(false))
	mutual := testsupport.StartRedis(t, testsupport.RedisTLS(true))
	other := testsupport.StartRedis(t, testsupport.RedisTLS(true))
	nameless := listenWithoutAltName(t)
	bare, stranger, renamed, old := mutual.TLSConfig(), mutual.TLSConfig(), encrypted.TLSConfig(), mutual.TLSConfig()
	bare.Certificates = nil
	stranger.Certificates = other.TLSConfig().Certificates
	renamed.ServerName = "db1.example"
	old.Certificates, old.MaxVersion = nil, tls.VersionTLS12
	for name, c := range map[string]struct {
		url  string
		tls  *tls.Config
		want string
	}{
		"another authority":        {encrypted.URL(), other.TLSConfig(), "redis.tls.ca_file"},
		"the system's authorities": {encrypted.URL(), nil, "redis.tls.ca_file"},
		"no authority": {encrypted.URL(), &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS12},
			"redis.tls.ca_file"},
		"another name":                   {encrypted.URL(), renamed, "redis.tls.server_name"},
		"a common name alone":            {"rediss://" + nameless, encrypted.TLSConfig(), "subjectAltName=IP:127.0.0.1"},
		"no client certificate":          {mutual.URL(), bare, "redis.tls.cert_file"},
		"no client certificate, TLS 1.2": {mutual.URL(), old, "redis.tls.cert_file"},
		"somebody else's certificate":    {mutual.URL(), stranger, "redis.tls.cert_file"},
		"TLS to a plain port":            {strings.Replace(plain.URL(), "redis", "rediss", 1), encrypted.TLSConfig(), "speak TLS"},
		"plain to a TLS port":            {strings.Replace(encrypted.URL(), "rediss", "redis", 1), nil, "rediss"},
	} {
		o := redisconn.Options{URL: c.url, Timeout: time.Minute} // a short limit could hide the answer of the server
		if name == "TLS to a plain port" {
			o.Timeout = time.Second // without TLS, Redis waits for the rest of a command
		}
		if c.tls != nil {
			o.TLS = always(c.tls)
		}
		if name == "plain to a TLS port" {
			o.TLS = nil
		}
		lock := newLock(t, openWith(t, o), "baton", "b", time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		_, err := lock.Acquire(ctx, elector.Candidate{Owner: "o1"})
		cancel()
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %q in it", name, err, c.want)
		}
	}
}

// listenWithoutAltName returns the address of a server whose certificate contains the host only as the common name. No client gets
// further than the handshake.
func listenWithoutAltName(t *testing.T) string {
	t.Helper()
	cert, key := filepath.Join(t.TempDir(), "cert"), filepath.Join(t.TempDir(), "key")
	testsupport.CertifyCommonName(t, cert, key, "127.0.0.1")
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() }) // no client waits for the listener any more
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, conn) // the client refuses the certificate
			_ = conn.Close()                 // the client has refused the certificate
		}
	}()
	return listener.Addr().String()
}
