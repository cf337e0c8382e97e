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
	"unicode"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"baton/internal/text"
)

const hidden = "***"

// Show is c as YAML, for people: every secret is ***.
func Show(c Config) []byte {
	c.Redis = c.Redis.hidden()
	c.Stores = eachStore(c.Stores, Redis.hidden)
	c.Databases = maps.Clone(c.Databases)
	for name, db := range c.Databases {
		db.DSNInline = hide(db.DSNInline)
		c.Databases[name] = db
	}
	c.Jobs, c.Notify = slices.Clone(c.Jobs), slices.Clone(c.Notify)
	for i := range c.Jobs {
		c.Jobs[i] = c.Jobs[i].hidden()
	}
	for i := range c.Notify {
		c.Notify[i].Webhook = c.Notify[i].Webhook.hidden()
	}
	return Encode(c)
}

// ShowJob is one job of a configuration as YAML, without any secret.
func ShowJob(j Job) string {
	_, shown, _ := strings.Cut(string(Show(Config{Jobs: []Job{j.argumentsHidden()}})), "\njobs:\n") // the rest is empty
	return shown
}

// argumentsHidden hides the arguments of the command: any may be a secret, or have one.
func (j Job) argumentsHidden() Job {
	if len(j.Command) > 1 {
		j.Command = Command{j.Command[0], hidden}
	}
	return j
}

// Words in a name, between _ and -, that show that its variable holds a secret. Some names are written in one word: PGPASSWORD, APIKEY.
var (
	secretWord = regexp.MustCompile(`(?i)(?:^|[_-])(?:(?:pg)?pass|pwd|dsn|` +
		`[a-z0-9]*(?:passwd|password|passphrase|secret|token|credential)s?|` +
		`(?:api|access|private|secret|auth)key)[0-9]*(?:$|[_-])`)
	vagueWord = regexp.MustCompile(`(?i)(?:^|[_-])(?:keys?|auth|urls?)[0-9]*(?:$|[_-])`)
)

// HoldsSecret reports whether a variable of that name holds a secret as its whole value. PWD is a shell's working directory.
func HoldsSecret(name string) bool { return name != "PWD" && secretWord.MatchString(name) }

// IsSecretName reports whether a variable of that name may hold a secret: in a DATABASE_URL the secret is a part of the value, and a
// KEY_COUNT is none.
func IsSecretName(name string) bool { return HoldsSecret(name) || vagueWord.MatchString(name) }

func (j Job) hidden() Job {
	j.Env = maps.Clone(j.Env)
	for name := range j.Env {
		if IsSecretName(name) || len(PasswordsIn(j.Env[name])) > 0 {
			j.Env[name] = hide(j.Env[name])
		}
	}
	j.DeadMansSwitch = j.DeadMansSwitch.hidden()
	return j
}

// hidden keeps the host alone: the path of a hook is its secret.
func (w *Webhook) hidden() *Webhook {
	if w == nil {
		return nil
	}
	out := *w
	if u, err := url.Parse(w.URL); w.URL != "" && err == nil {
		out.URL = u.Scheme + "://" + u.Host + "/" + hidden
	} else {
		out.URL = hide(w.URL)
	}
	return &out
}

func (w *Webhook) escaped() *Webhook {
	if w == nil {
		return nil
	}
	return &Webhook{URL: escape(w.URL), URLFile: escape(w.URLFile), TokenFile: escape(w.TokenFile)}
}

// Encode is c as YAML that Load reads back, secrets and all: for files that only
// their owner can read, never for a terminal or a log.
func Encode(c Config) []byte {
	c.Redis = c.Redis.escaped()
	c.Stores = eachStore(c.Stores, Redis.escaped)
	c.Databases = maps.Clone(c.Databases)
	for name, db := range c.Databases {
		db.DSNFile, db.DSNInline = escape(db.DSNFile), escape(db.DSNInline)
		c.Databases[name] = db
	}
	c.Jobs, c.Notify = slices.Clone(c.Jobs), slices.Clone(c.Notify)
	for i, j := range c.Jobs {
		j.EnvFile, j.DeadMansSwitch, j.Secrets = escape(j.EnvFile), j.DeadMansSwitch.escaped(), maps.Clone(j.Secrets)
		for name, file := range j.Secrets {
			j.Secrets[name] = escape(file)
		}
		c.Jobs[i] = j
	}
	for i, n := range c.Notify {
		c.Notify[i].Webhook = n.Webhook.escaped()
	}
	// Structs of texts, lists and durations always encode.
	root, _ := yaml.ValueToNode(c, yaml.IndentSequence(true), yaml.OmitEmpty(),
		yaml.CustomMarshaler(func(d time.Duration) ([]byte, error) { return []byte(text.Exact(d)), nil }))
	ast.Walk(quoter{}, root)
	return []byte(root.String() + "\n")
}

// quoter makes texts with control characters be written in double quotes, tabs and line breaks too: the library would lose some of them.
type quoter struct{}

// Visit implements [ast.Visitor].
func (q quoter) Visit(n ast.Node) ast.Visitor {
	if s, ok := n.(*ast.StringNode); ok && strings.ContainsFunc(s.Value, unicode.IsControl) {
		s.Token.Type = token.DoubleQuoteType
	}
	return q
}

// Hash is a short text that differs when two nodes would run jobs differently: it covers jobs, and databases by name and driver. Nodes
// may differ in the rest, such as the place of a password.
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

// hidden is r without its secrets.
func (r Redis) hidden() Redis {
	r.URL, r.Quorum = hideUser(r.URL), each(r.Quorum, hideUser)
	r.PasswordInline = hide(r.PasswordInline)
	if r.Sentinel != nil {
		s := *r.Sentinel
		s.PasswordInline = hide(s.PasswordInline)
		r.Sentinel = &s
	}
	return r
}

// escaped is r in a form that Load reads back unchanged.
func (r Redis) escaped() Redis {
	r.URL, r.Cluster, r.Quorum = escape(r.URL), each(r.Cluster, escape), each(r.Quorum, escape)
	r.PasswordFile, r.PasswordInline = escape(r.PasswordFile), escape(r.PasswordInline)
	if r.Sentinel != nil {
		s := *r.Sentinel
		s.Addresses = each(s.Addresses, escape)
		s.PasswordFile, s.PasswordInline = escape(s.PasswordFile), escape(s.PasswordInline)
		r.Sentinel = &s
	}
	if r.TLS != nil {
		t := *r.TLS
		t.CAFile, t.CertFile, t.KeyFile = escape(t.CAFile), escape(t.CertFile), escape(t.KeyFile)
		r.TLS = &t
	}
	return r
}

// eachStore applies f to every store, in a map of its own.
func eachStore(stores map[string]Store, f func(Redis) Redis) map[string]Store {
	out := maps.Clone(stores)
	for name, s := range out {
		out[name] = Store{}.of(f(s.redis(name)))
	}
	return out
}

// each applies f to every text, in a list of its own.
func each(list []string, f func(string) string) []string {
	out := slices.Clone(list)
	for i, s := range out {
		out[i] = f(s)
	}
	return out
}

func hide(secret string) string {
	if secret == "" {
		return ""
	}
	return hidden
}

// hideUser hides the text before the @ of a URL.
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

// escape keeps Load from replacing ${NAME} in a literal text.
func escape(s string) string {
	return literal.ReplaceAllStringFunc(s, func(m string) string { return "$" + m })
}

var literal = regexp.MustCompile(`\$\{[A-Za-z_][A-Za-z0-9_]*\}`)
