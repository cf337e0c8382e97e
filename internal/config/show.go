package config

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
)

const hidden = "***"

// Show is c as YAML, for people: every secret is ***.
func Show(c Config) []byte {
	c.Redis.URL = hideUser(c.Redis.URL)
	c.Databases = maps.Clone(c.Databases)
	for name, db := range c.Databases {
		if db.DSNInline != "" {
			db.DSNInline = hidden
		}
		c.Databases[name] = db
	}
	return Encode(c)
}

// Encode is c as YAML that Load reads back, secrets and all: for files that only
// their owner can read, never for a terminal or a log.
func Encode(c Config) []byte {
	c.Redis.URL = escape(c.Redis.URL)
	c.Redis.PasswordFile = escape(c.Redis.PasswordFile)
	c.Databases = maps.Clone(c.Databases)
	for name, db := range c.Databases {
		db.DSNFile, db.DSNInline = escape(db.DSNFile), escape(db.DSNInline)
		c.Databases[name] = db
	}
	// Structs of texts, lists and durations always encode.
	out, _ := yaml.MarshalWithOptions(c, yaml.IndentSequence(true), yaml.OmitEmpty(),
		yaml.CustomMarshaler(func(d time.Duration) ([]byte, error) { return []byte(short(d)), nil }))
	return out
}

// Hash is a short text that differs when two nodes would run jobs differently:
// it covers jobs, and databases by name and driver. Nodes may well differ in the
// rest, such as where a password is kept.
func Hash(c Config) string {
	type database struct{ Name, Driver string }
	var dbs []database
	for _, name := range slices.Sorted(maps.Keys(c.Databases)) {
		dbs = append(dbs, database{name, c.Databases[name].Driver})
	}
	b, _ := json.Marshal(struct { // texts and numbers always encode
		Jobs      []Job
		Databases []database
	}{c.Jobs, dbs})
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:4])
}

// hideUser hides what stands before the @ of a URL.
func hideUser(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return hidden
	}
	if u.User == nil {
		return raw
	}
	u.User = nil
	scheme, rest, _ := strings.Cut(u.String(), "://")
	return scheme + "://:" + hidden + "@" + rest
}

// escape keeps Load from replacing ${NAME} in what is to be taken literally.
func escape(s string) string {
	return literal.ReplaceAllStringFunc(s, func(m string) string { return "$" + m })
}

var literal = regexp.MustCompile(`\$\{[A-Za-z_][A-Za-z0-9_]*\}`)

// short writes 1h, where time.Duration writes 1h0m0s.
func short(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
