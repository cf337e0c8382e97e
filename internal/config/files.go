package config

import (
	"fmt"
	"maps"
	"slices"
)

// File is a file that a configuration names.
type File struct {
	Key  string // the setting of the file, for example databases.main.dsn_file
	Path string
	Kind FileKind
}

// FileKind is the kind of a file's content.
type FileKind int

// These are the kinds of files.
const (
	FileSecret       FileKind = iota // one line with a secret
	FileToken                        // the token of page and API
	FileVariables                    // lines of NAME=VALUE, which include secrets
	FilePrivateKey                   // PEM
	FileCertificates                 // PEM, which every user may read
)

// Files returns all files that the configuration names and that baton itself reads.
func (c Config) Files() []File {
	var all []File
	add := func(kind FileKind, key, path string) {
		if path != "" {
			all = append(all, File{key, path, kind})
		}
	}
	hook := func(key string, w *Webhook) {
		if w != nil {
			add(FileSecret, key+".url_file", w.URLFile)
			add(FileSecret, key+".token_file", w.TokenFile)
		}
	}
	for _, r := range c.AllStores() {
		add(FileSecret, r.At("password_file"), r.PasswordFile)
		if s := r.Sentinel; s != nil {
			add(FileSecret, r.At("sentinel.password_file"), s.PasswordFile)
		}
		if t := r.TLS; t != nil {
			add(FileCertificates, r.At("tls.ca_file"), t.CAFile)
			add(FileCertificates, r.At("tls.cert_file"), t.CertFile)
			add(FilePrivateKey, r.At("tls.key_file"), t.KeyFile)
		}
	}
	add(FileToken, "http.token_file", c.HTTP.TokenFile)
	add(FileToken, "http.read_token_file", c.HTTP.ReadTokenFile)
	if t := c.HTTP.TLS; t != nil {
		add(FileCertificates, "http.tls.cert_file", t.CertFile)
		add(FilePrivateKey, "http.tls.key_file", t.KeyFile)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Databases)) {
		add(FileSecret, "databases."+name+".dsn_file", c.Databases[name].DSNFile)
	}
	for i, n := range c.Notify {
		hook(fmt.Sprintf("notify[%d].webhook", i), n.Webhook)
	}
	for i, j := range c.Jobs {
		at := fmt.Sprintf("jobs[%d]", i)
		hook(at+".dead_mans_switch", j.DeadMansSwitch)
		add(FileVariables, at+".env_file", j.EnvFile)
		for _, name := range slices.Sorted(maps.Keys(j.Secrets)) {
			add(FileSecret, at+".secrets."+name, j.Secrets[name])
		}
	}
	return all
}
