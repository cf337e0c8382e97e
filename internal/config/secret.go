package config

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"strings"

	"baton/internal/text"
)

// Password is the content of the password file, which is read at every call, or the password in the configuration or the URL, or "".
func (r Redis) Password() (string, error) {
	if r.PasswordFile != "" {
		return readSecret(r.At("password_file"), r.PasswordFile)
	}
	if r.PasswordInline != "" {
		return r.PasswordInline, nil
	}
	if u, err := url.Parse(r.URL); err == nil {
		password, _ := u.User.Password()
		return password, nil
	}
	return "", nil
}

// SentinelPassword is the Sentinels' own password, found as Password is.
func (r Redis) SentinelPassword() (string, error) {
	switch s := r.Sentinel; {
	case s == nil:
		return "", nil
	case s.PasswordFile != "":
		return readSecret(r.At("sentinel.password_file"), s.PasswordFile)
	default:
		return s.PasswordInline, nil
	}
}

// DSN is the data source name: the content of dsn_file, which is read at every call, or the inline one. It contains a password: do not
// print it.
func (d Database) DSN() (string, error) {
	if d.DSNFile != "" {
		return readSecret("dsn_file", d.DSNFile)
	}
	return d.DSNInline, nil
}

// Address is the URL: the content of the file, which is read at every call, or the one in the configuration. It may contain a secret: do
// not print it.
func (w Webhook) Address() (string, error) {
	if w.URLFile != "" {
		return readSecret("url_file", w.URLFile)
	}
	return w.URL, nil
}

// Token is the token for authorization, read at every call; "" without one.
func (w Webhook) Token() (string, error) {
	if w.TokenFile == "" {
		return "", nil
	}
	return readSecret("token_file", w.TokenFile)
}

// TLSConfig is the encryption of a connection to Redis; nil without TLS. It reads the files at every call. Without server_name the name
// is left to the caller that dials, which knows the host.
func (r Redis) TLSConfig() (*tls.Config, error) {
	if !r.encrypted() {
		return nil, nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if r.TLS == nil {
		return c, nil
	}
	c.ServerName = r.TLS.ServerName
	if r.TLS.CAFile != "" {
		pem, err := readFile(r.At("tls.ca_file"), r.TLS.CAFile)
		if err != nil {
			return nil, err
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s: %s has no certificate in it; "+
				"want PEM, lines from -----BEGIN CERTIFICATE----- on", r.At("tls.ca_file"), r.TLS.CAFile)
		}
	}
	if r.TLS.CertFile != "" {
		own, err := r.TLS.keyPair(r.At("tls"))
		if err != nil {
			return nil, err
		}
		c.Certificates = []tls.Certificate{own}
	}
	return c, nil
}

func (t TLS) keyPair(at string) (tls.Certificate, error) {
	cert, err := readFile(at+".cert_file", t.CertFile)
	if err != nil {
		return tls.Certificate{}, err
	}
	key, err := readFile(at+".key_file", t.KeyFile)
	if err != nil {
		return tls.Certificate{}, err
	}
	own, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return own, fmt.Errorf("%s: %s and %s: %w; want a certificate and its private key, both PEM, "+
			"the key without a passphrase", at, t.CertFile, t.KeyFile, err)
	}
	return own, nil
}

// readSecret reads a file of one line. Its errors name the file, never its content.
func readSecret(key, path string) (string, error) {
	b, err := readFile(key, path)
	if err != nil {
		return "", err
	}
	s := strings.TrimRight(string(b), "\r\n")
	if s == "" {
		return "", fmt.Errorf("%s: %s is empty; write the secret into it, on one line", key, path)
	}
	if strings.ContainsAny(s, "\r\n") {
		return "", fmt.Errorf("%s: %s has more than one line; it must hold the secret alone", key, path)
	}
	return s, nil
}

// readFile reads a file. Its errors name the file's setting, and the remedy.
func readFile(key, path string) ([]byte, error) {
	b, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s: %w; create it or correct the path", key, err)
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("%s: %w; let this user read it, or hand it over by systemd's LoadCredential=", key, err)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	return text.WithoutMark(b), nil
}
