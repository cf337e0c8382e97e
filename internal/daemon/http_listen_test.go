package daemon

import (
	"crypto/tls"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/zap"

	"baton/internal/config"
	"baton/internal/operate"
	"baton/internal/testsupport"
)

func TestOverTLSTheCertificateIsReadAnewAndNothingElseIsSpoken(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := configFor(testsupport.StartRedis(t).URL())
	c.HTTP.TLS = &config.ServerTLS{CertFile: filepath.Join(dir, "tls.crt"), KeyFile: filepath.Join(dir, "tls.key")}
	c.HTTP.TokenFile = writeFile(t, "token", testToken)
	testsupport.Certify(t, c.HTTP.TLS.CertFile, c.HTTP.TLS.KeyFile, 1)
	r := start(t, c, nil)
	serial := func() (int64, error) {
		client, err := operate.DialServer("https://"+r.address, c.HTTP.TokenFile, c.HTTP.TLS.CertFile)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = client.Close() }()
		if _, err := client.Snapshot(t.Context()); err != nil {
			return 0, err
		}
		conn, err := tls.Dial("tcp", r.address, &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			return 0, err
		}
		defer func() { _ = conn.Close() }()
		return conn.ConnectionState().PeerCertificates[0].SerialNumber.Int64(), nil
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
	// A key that does not belong to the certificate changes nothing, but certificate and key together do.
	testsupport.Certify(t, filepath.Join(dir, "other"), c.HTTP.TLS.KeyFile, 9)
	await(t, "the log to tell of it", func() bool { _, _ = serial(); return r.logs.FilterMessageSnippet("the old one stays in use").Len() > 0 })
	testsupport.Certify(t, c.HTTP.TLS.CertFile, c.HTTP.TLS.KeyFile, 2)
	await(t, "the new certificate", func() bool { n, _ := serial(); return n == 2 })
	r.endsWell()
	testsupport.Certify(t, filepath.Join(dir, "other"), c.HTTP.TLS.KeyFile, 9)
	if err := Run(t.Context(), c, Options{Logger: zap.NewNop(), Getenv: func(string) (string, bool) { return "", false }}); err == nil || !strings.Contains(err.Error(), "cannot be used together") {
		t.Errorf("a wrong pair: %v", err)
	}
	c.HTTP.TLS, c.HTTP.TokenFile = nil, writeFile(t, "token", "short")
	if err := Run(t.Context(), c, Options{Logger: zap.NewNop(), Getenv: func(string) (string, bool) { return "", false }}); err == nil || !strings.Contains(err.Error(), "needs at least 16") {
		t.Errorf("a short token: %v", err)
	}
}
