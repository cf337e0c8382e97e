package daemon

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"

	"baton/internal/config"
	"baton/internal/testsupport"
)

// certify writes a certificate for 127.0.0.1 that vouches for itself, and its key.
func certify(t *testing.T, cert, key string, serial int64) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "baton"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "EC PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestOverTLSTheCertificateIsReadAnewAndNothingElseIsSpoken(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := configFor(testsupport.StartRedis(t).URL())
	c.HTTP.TLS = &config.ServerTLS{CertFile: filepath.Join(dir, "tls.crt"), KeyFile: filepath.Join(dir, "tls.key")}
	c.HTTP.TokenFile = writeFile(t, "token", testToken)
	certify(t, c.HTTP.TLS.CertFile, c.HTTP.TLS.KeyFile, 1)
	r := start(t, c, nil)
	serial := func() (int64, error) {
		client, err := DialServer("https://"+r.address, c.HTTP.TokenFile, c.HTTP.TLS.CertFile)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = client.Close() }()
		resp, err := client.http.Get("https://" + r.address + "/-/healthy")
		if err != nil {
			return 0, err
		}
		_ = resp.Body.Close()
		return resp.TLS.PeerCertificates[0].SerialNumber.Int64(), nil
	}
	if n, err := serial(); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	resp, err := http.Get("http://" + r.address + "/-/healthy")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusBadRequest {
		t.Errorf("plain HTTP: %d", resp.StatusCode)
	}
	// A key that is not the certificate's changes nothing, and both together do.
	certify(t, filepath.Join(dir, "other"), c.HTTP.TLS.KeyFile, 9)
	await(t, "the log to tell of it", func() bool { _, _ = serial(); return r.logs.FilterMessageSnippet("old one is used").Len() > 0 })
	certify(t, c.HTTP.TLS.CertFile, c.HTTP.TLS.KeyFile, 2)
	await(t, "the new certificate", func() bool { n, _ := serial(); return n == 2 })
	if err := r.end(); err != nil {
		t.Error(err)
	}
	certify(t, filepath.Join(dir, "other"), c.HTTP.TLS.KeyFile, 9)
	if err := Run(t.Context(), c, Options{Logger: zap.NewNop(), Getenv: func(string) (string, bool) { return "", false }}); err == nil || !strings.Contains(err.Error(), "cannot be used together") {
		t.Errorf("a wrong pair: %v", err)
	}
	c.HTTP.TLS, c.HTTP.TokenFile = nil, writeFile(t, "token", "short")
	if err := Run(t.Context(), c, Options{Logger: zap.NewNop(), Getenv: func(string) (string, bool) { return "", false }}); err == nil || !strings.Contains(err.Error(), "takes 16 at least") {
		t.Errorf("a short token: %v", err)
	}
}

func TestOfManyThatWantTheAdminSocketOneHasIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "admin.sock")
	for range 20 {
		// A dead process has left it.
		left, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		left.SetUnlinkOnClose(false)
		_ = left.Close()
		var wg sync.WaitGroup
		var bound atomic.Int32
		var mine atomic.Pointer[net.Listener]
		for range 8 {
			wg.Go(func() {
				l, err := listenAdmin(path)
				if err == nil {
					bound.Add(1)
					mine.Store(&l)
				} else if !strings.Contains(err.Error(), "another baton") {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if bound.Load() != 1 {
			t.Fatalf("%d have it", bound.Load())
		}
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != adminSocketMode {
			t.Errorf("%v %v", info.Mode(), err)
		}
		if err := (*mine.Load()).Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestTheAdminSocketTakesThePlaceOfADeadSocketAlone(t *testing.T) {
	dir := t.TempDir()
	precious := filepath.Join(dir, "file")
	for _, c := range []struct {
		path string
		make func(path string) error
	}{
		{precious, func(path string) error { return os.WriteFile(path, []byte("precious"), 0o600) }},
		{filepath.Join(dir, "link"), func(path string) error { return os.Symlink(precious, path) }},
		{filepath.Join(dir, "lock"), func(path string) error { return os.Symlink(precious, path+".lock") }},
	} {
		if err := c.make(c.path); err != nil {
			t.Fatal(err)
		}
		l, err := listenAdmin(c.path)
		if err == nil {
			_ = l.Close()
			t.Errorf("%s: its place was taken", c.path)
		}
	}
	if text, err := os.ReadFile(precious); err != nil || string(text) != "precious" {
		t.Errorf("%v %q", err, text)
	}
}
