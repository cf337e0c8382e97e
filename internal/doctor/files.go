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
	"baton/internal/secret"
	"baton/internal/status/auth"
)

// examineFiles finds secrets that other users can read, and programs and directories that
// they can change. The content of a file is checked where the file is used.
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
		r.changeable(program, "every user of this host can have baton's user run anything, with its passwords")
	}
	r.ownDirectories(o)
	r.adminSocket(c.HTTP.AdminSocket, o)
	return r.findings
}

// encryption checks what secures page and API.
func (r *report) encryption(h config.HTTP) {
	r.subject = subjectConfig
	var c *certificate.Certificate
	err := auth.CheckTokens(h.TokenFile, h.ReadTokenFile)
	if err == nil {
		c, err = certificate.Open(h)
	}
	if err != nil {
		r.add(SeverityError, err.Error(), "the node does not start", "as said; run doctor as the user that baton runs as")
		return
	}
	if c == nil {
		return
	}
	if what, refused := c.Ends(time.Now()); what != "" {
		severity := SeverityWarning
		if refused {
			severity = SeverityError
		}
		r.add(severity, "http.tls: "+what, "browsers, Prometheus and baton --server refuse to connect; the node leads nevertheless",
			"renew it in its files: they are read again, without a restart")
	}
}

// others are the users of the host that are neither the owner nor in the group.
const (
	othersRead  fs.FileMode = 0o004
	othersWrite fs.FileMode = 0o002
)

func (r *report) changeable(path, consequence string) {
	r.subject = "file " + path
	info, err := os.Stat(path)
	if err == nil && info.Mode()&othersWrite != 0 && info.Mode()&fs.ModeSticky == 0 {
		r.add(SeverityError, "every user of this host can write to it", consequence, "chmod o-w "+path)
	}
}

func (r *report) configFile(path string, c config.Config) {
	r.changeable(path, "every user of this host can have baton run anything, with its passwords")
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
		r.add(SeverityError, "every user of this host can read it, and it has secrets in it: "+strings.Join(keys, ", "),
			"every user of this host knows them",
			"chmod 640, and chgrp to baton's group; better, put each into a file of its own (password_file, dsn_file, "+
				"url_file, secrets), handed over by LoadCredential=")
	}
}

func (r *report) secretFile(path string) {
	r.changeable(path, "every user of this host can have baton use another secret, or another server")
	if info, err := os.Stat(path); err == nil && info.Mode()&othersRead != 0 {
		r.add(SeverityError, "every user of this host can read it, and it holds a secret", "every user of this host knows the secret",
			"chmod o-r "+path+", and change the secret; better, hand it over by LoadCredential=")
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
		r.changeable(dir, "every user of this host can have baton forget which epochs there were, or take orders in its place")
		if err := mayWrite(dir); given && err != nil {
			r.add(SeverityError, fmt.Sprintf("this user cannot write there: %v", err),
				"the locks of a crashed daemon are not released at once, and the highest epoch is not remembered",
				"chown it to baton's user; StateDirectory= and RuntimeDirectory= of the unit do")
		}
	}
}

// adminSocket checks the permissions of the socket: write access is the right to give orders.
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

// sqliteFiles are the files of the configuration's databases.
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
