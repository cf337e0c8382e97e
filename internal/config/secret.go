package config

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"strings"
)

// Address is the URL without user and password: what may be printed, and dialled
// together with User and Password.
func (r Redis) Address() string {
	u, err := url.Parse(r.URL)
	if err != nil {
		return ""
	}
	u.User = nil
	return u.String()
}

// User is the ACL user, or empty for Redis' default one.
func (r Redis) User() string {
	if u, err := url.Parse(r.URL); err == nil && u.User.Username() != "" {
		return u.User.Username()
	}
	return r.Username
}

// Password is the content of the password file, read anew at every call, or the
// URL's password, or empty.
func (r Redis) Password() (string, error) {
	if r.PasswordFile != "" {
		return readSecret("redis.password_file", r.PasswordFile)
	}
	if u, err := url.Parse(r.URL); err == nil {
		password, _ := u.User.Password()
		return password, nil
	}
	return "", nil
}

// DSN is the data source name: the content of dsn_file, read anew at every call,
// or the inline one. Whatever prints it prints a password.
func (d Database) DSN() (string, error) {
	if d.DSNFile != "" {
		return readSecret("dsn_file", d.DSNFile)
	}
	return d.DSNInline, nil
}

// readSecret reads a file of one line. Its errors name the file, never its content.
func readSecret(key, path string) (string, error) {
	b, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("%s: %w; create it or correct the path", key, err)
	case errors.Is(err, fs.ErrPermission):
		return "", fmt.Errorf("%s: %w; let this user read it, or hand it over by systemd's LoadCredential=", key, err)
	case err != nil:
		return "", fmt.Errorf("%s: %w", key, err)
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
