package doctor

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"baton/internal/certificate"
	"baton/internal/config"
	"baton/internal/finding"
	"baton/internal/secret"
	"baton/internal/status/auth"
)

// examineFiles finds secrets that other users can read, and programs and directories that other users can change. It does not check the
// contents of files, because other checks do that where a file is used.
func examineFiles(c config.Config, o Options) []Finding {
	r := &report{}
	if o.ConfigFile != "" {
		r.configFile(o.ConfigFile, c)
	}
	for _, path := range secret.Files(c) {
		r.secretFile(path)
	}
	r.encryption(c.HTTP)
	if program, err := os.Executable(); err == nil {
		r.changeable(program, "every user of this host can make baton's user run any program, with baton's passwords")
	}
	r.ownDirectories(o)
	r.adminSocket(c.HTTP.AdminSocket, o)
	return r.findings
}

// encryption checks the tokens and the certificate of the status page and the API.
func (r *report) encryption(h config.HTTP) {
	r.subject = subjectConfig
	var c *certificate.Certificate
	err := auth.CheckTokens(h.TokenFile, h.ReadTokenFile)
	if err == nil {
		c, err = certificate.Open(h)
	}
	if err != nil {
		r.add(finding.UnusableToken, err.Error(), "the node does not start", "correct this; run doctor as the user that baton runs as")
		return
	}
	if c == nil {
		return
	}
	if what, refused := c.Ends(time.Now()); what != "" {
		kind := finding.EndingCertificate
		if refused {
			kind = finding.EndedCertificate
		}
		r.add(kind, "http.tls: "+what, "browsers, Prometheus and baton --server refuse to connect; the node leads nevertheless",
			"replace the certificate files with renewed ones: baton reads them without a restart")
	}
}

// These are the permissions of users that neither own the file nor belong to its group.
const (
	othersRead  fs.FileMode = 0o004
	othersWrite fs.FileMode = 0o002
)

func (r *report) changeable(path, consequence string) {
	r.subject = "file " + path
	info, err := os.Stat(path)
	if err == nil && info.Mode()&othersWrite != 0 && info.Mode()&fs.ModeSticky == 0 {
		r.add(finding.WritableByOthers, "every user of this host can write to it", consequence, "chmod o-w "+path)
	}
}

func (r *report) configFile(path string, c config.Config) {
	r.changeable(path, "every user of this host can make baton run any program, with baton's passwords")
	info, err := os.Stat(path)
	if err != nil || info.Mode()&othersRead == 0 {
		return
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return
	}
	var keys []string
	for key, value := range secret.Inline(c) {
		if len(value) >= secret.LeastPassword && bytes.Contains(text, []byte(value)) {
			keys = append(keys, key)
		}
	}
	if slices.Sort(keys); len(keys) > 0 {
		r.add(finding.SecretsInReadableFile, "every user of this host can read it, and it has secrets in it: "+strings.Join(keys, ", "),
			"every user of this host knows them",
			"chmod 640, and chgrp to baton's group; better, put each into a file of its own (password_file, dsn_file, "+
				"url_file, secrets), passed by LoadCredential=")
	}
}

func (r *report) secretFile(path string) {
	r.changeable(path, "every user of this host can make baton use another secret, or another server")
	if info, err := os.Stat(path); err == nil && info.Mode()&othersRead != 0 {
		r.add(finding.ReadableSecret, "every user of this host can read it, and it holds a secret",
			"every user of this host knows the secret",
			"chmod o-r "+path+", and change the secret; better, pass it by LoadCredential=")
	}
}

// ownDirectories checks the state and runtime directories of the node.
func (r *report) ownDirectories(o Options) {
	for name, usual := range map[string]string{"STATE_DIRECTORY": o.usualState(), "RUNTIME_DIRECTORY": o.usualRuntime()} {
		dir, _, _ := strings.Cut(o.env(name), ":")
		given := dir != ""
		if !given {
			dir = usual
		}
		info, err := os.Stat(dir)
		if err != nil || !info.IsDir() {
			continue
		}
		r.changeable(dir, "every user of this host can delete the epochs that baton remembers, or receive orders in its place")
		if err := mayWrite(dir); given && err != nil {
			r.add(finding.UnwritableDirectory, fmt.Sprintf("this user cannot write there: %v", err),
				"the locks of a crashed daemon are not released at once, and the highest epoch is not remembered",
				"chown it to baton's user; StateDirectory= and RuntimeDirectory= of the unit do this")
		}
	}
}

// adminSocket checks the permissions of the admin socket. Every user that may write to this socket can give orders to the node.
func (r *report) adminSocket(path string, o Options) {
	switch path {
	case config.Off:
		return
	case "":
		dir, _, _ := strings.Cut(o.env("RUNTIME_DIRECTORY"), ":")
		if dir == "" {
			dir = o.usualRuntime()
		}
		path = filepath.Join(dir, "admin.sock")
	}
	if info, err := os.Stat(path); err == nil && info.Mode()&fs.ModeSocket != 0 {
		r.changeable(path, "every user of this host can give orders, without a token")
	}
}

// sqliteFiles returns the files of the configuration's databases.
func sqliteFiles(c config.Config) []string {
	var files []string
	for _, name := range slices.Sorted(maps.Keys(c.Databases)) {
		db := c.Databases[name]
		if db.Driver != "sqlite" {
			continue
		}
		dsn, err := db.DSN()
		if err != nil {
			continue
		}
		path, _, _ := strings.Cut(strings.TrimPrefix(dsn, "file:"), "?")
		if filepath.IsAbs(path) {
			files = append(files, path)
		}
	}
	return files
}
