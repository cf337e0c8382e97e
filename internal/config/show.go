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

// Show returns c as YAML for people. Every secret is replaced with ***.
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

// ShowJob returns one job of a configuration as YAML, without secrets.
func ShowJob(j Job) string {
	_, shown, _ := strings.Cut(string(Show(Config{Jobs: []Job{j.argumentsHidden()}})), "\njobs:\n") // the text before that is empty
	return shown
}

// argumentsHidden hides the arguments of the command, because any argument may be or contain a secret.
func (j Job) argumentsHidden() Job {
	if len(j.Command) > 1 {
		j.Command = Command{j.Command[0], hidden}
	}
	return j
}

// secretWord matches words in a variable's name that show that the variable contains a secret. Words are separated by "_" or "-". Some
// names are written as one word, such as PGPASSWORD or APIKEY.
var (
	secretWord = regexp.MustCompile(`(?i)(?:^|[_-])(?:(?:pg)?pass|pwd|dsn|` +
		`[a-z0-9]*(?:passwd|password|passphrase|secret|token|credential)s?|` +
		`(?:api|access|private|secret|auth)key)[0-9]*(?:$|[_-])`)
	vagueWord = regexp.MustCompile(`(?i)(?:^|[_-])(?:keys?|auth|urls?)[0-9]*(?:$|[_-])`)
)

// HoldsSecret reports whether the whole value of a variable with this name is a secret. It excludes PWD, which is the working directory of
// a shell.
func HoldsSecret(name string) bool { return name != "PWD" && secretWord.MatchString(name) }

// IsSecretName reports whether a variable with this name may contain a secret. For example, a part of a DATABASE_URL may be a secret, but a
// KEY_COUNT is no secret.
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

// hidden returns w with only the host of the URL, because the path of a webhook is a secret.
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

// Encode returns c as YAML with all secrets, in a form that Load can read. The result is only for files that only their owner can read. It
// must never be written to a terminal or a log.
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
	// Encoding cannot fail for structs of texts, lists and durations.
	root, _ := yaml.ValueToNode(c, yaml.IndentSequence(true), yaml.OmitEmpty(),
		yaml.CustomMarshaler(func(d time.Duration) ([]byte, error) { return []byte(text.Exact(d)), nil }))
	ast.Walk(quoter{}, root)
	return []byte(root.String() + "\n")
}

// quoter puts texts with control characters, including tabs and line breaks, in double quotes, because the library would lose some of these
// characters.
type quoter struct{}

// Visit implements [ast.Visitor].
func (q quoter) Visit(n ast.Node) ast.Visitor {
	if s, ok := n.(*ast.StringNode); ok && strings.ContainsFunc(s.Value, unicode.IsControl) {
		s.Token.Type = token.DoubleQuoteType
	}
	return q
}

// Hash returns a short text that is different if two nodes would run jobs differently. It includes the jobs, and the names and drivers of
// the databases. Nodes may differ in the other settings, such as the file of a password.
func Hash(c Config) string {
	type database struct{ Name, Driver string }
	var dbs []database
	for _, name := range slices.Sorted(maps.Keys(c.Databases)) {
		dbs = append(dbs, database{name, c.Databases[name].Driver})
	}
	b, _ := json.Marshal(struct { // cannot fail, because the fields are texts and numbers
		Jobs      []Job
		Databases []database
	}{c.Jobs, dbs})
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:4])
}

// hidden returns r without its secrets.
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

// escaped returns r in a form that Load reads back unchanged.
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

// eachStore returns a copy of the map after applying f to every store.
func eachStore(stores map[string]Store, f func(Redis) Redis) map[string]Store {
	out := maps.Clone(stores)
	for name, s := range out {
		out[name] = Store{}.of(f(s.redis(name)))
	}
	return out
}

// each returns a copy of the list after applying f to every text.
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

// escape changes s so that Load does not replace ${NAME} in it.
func escape(s string) string {
	return literal.ReplaceAllStringFunc(s, func(m string) string { return "$" + m })
}

var literal = regexp.MustCompile(`\$\{[A-Za-z_][A-Za-z0-9_]*\}`)
