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

// Password returns the password. It returns the content of the password file, which it reads at every call, or else the password in the
// configuration or in the URL, or else "".
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

// SentinelPassword returns the Sentinels' own password. It looks for the password in the same way as Password.
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

// DSN returns the data source name. It returns the content of dsn_file, which it reads at every call, or the DSN in the configuration. The
// DSN contains a password, so it must not be printed.
func (d Database) DSN() (string, error) {
	if d.DSNFile != "" {
		return readSecret("dsn_file", d.DSNFile)
	}
	return d.DSNInline, nil
}

// Address returns the URL. It returns the content of url_file, which it reads at every call, or the URL in the configuration. The URL may
// contain a secret, so it must not be printed.
func (w Webhook) Address() (string, error) {
	if w.URLFile != "" {
		return readSecret("url_file", w.URLFile)
	}
	return w.URL, nil
}

// Token returns the token for authorization, which it reads at every call. It returns "" if there is no token.
func (w Webhook) Token() (string, error) {
	if w.TokenFile == "" {
		return "", nil
	}
	return readSecret("token_file", w.TokenFile)
}

// TLSConfig returns the TLS configuration of a connection to Redis, or nil if the connection does not use TLS. It reads the files at every
// call. If the configuration has no server_name, the caller that dials must set it in the result, because that caller knows the host.
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
				"it must be a PEM file with a line -----BEGIN CERTIFICATE-----", r.At("tls.ca_file"), r.TLS.CAFile)
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
		return own, fmt.Errorf("%s: %s and %s: %w; give a certificate and its private key as PEM files, "+
			"and the key without a passphrase", at, t.CertFile, t.KeyFile, err)
	}
	return own, nil
}

// readSecret reads a file with one line. Its errors name the file, but never quote the content.
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

// readFile reads a file. Its errors contain the name of the setting and the remedy.
func readFile(key, path string) ([]byte, error) {
	b, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s: %w; create it or correct the path", key, err)
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("%s: %w; allow this user to read it, or pass it by systemd's LoadCredential=", key, err)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	return text.WithoutMark(b), nil
}
