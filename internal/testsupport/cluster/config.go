package cluster

import (
	"fmt"
	"os"
	"strings"
	"time"

	"baton/internal/testsupport"
)

// Options describe a cluster. The zero value of a field means its default.
type Options struct {
	Nodes int           // default 3; they are named n1, n2, ...
	TTL   time.Duration // default 10s: a busy machine takes it from no node
	// RedisURL is required unless RedisURLOf is set, which may give every node
	// (0, 1, ...) a way of its own, for example through a proxy.
	RedisURL   string
	RedisURLOf func(node int) string
	LockKey    string // default baton
	// What stands under redis: (beside the url), election: (beside the lock key and
	// the ttl), databases: and jobs:, with any common indentation.
	RedisYAML, ElectionYAML, DatabasesYAML, JobsYAML string
	// DatabasesYAMLOf may be set instead of DatabasesYAML, for ways of their own.
	DatabasesYAMLOf func(node int) string
	// NodeYAMLOf is what stands under node: beside the id.
	NodeYAMLOf func(node int) string
	LogLevel   string   // default info
	Env        []string // further environment of every node
	// EnvOf is further environment of one node (0, 1, ...).
	EnvOf func(node int) []string
	// HTTPYAML is more of http: on the same line, for example "token_file: /x".
	HTTPYAML string
	// TopYAML are further sections of the file.
	TopYAML string
	// Program is run instead of what Build returns.
	Program string
	// RuntimeDir gives every node a $RUNTIME_DIRECTORY, as systemd does.
	RuntimeDir bool
	// MayExit: a node that ends by itself does not fail the test. One that was
	// frozen beyond its trust window may.
	MayExit bool
}

func (o *Options) setDefaults() {
	if o.Nodes == 0 {
		o.Nodes = 3
	}
	if o.TTL == 0 {
		o.TTL = 10 * time.Second
	}
	if o.LockKey == "" {
		o.LockKey = "baton"
	}
	if o.LogLevel == "" {
		o.LogLevel = "info"
	}
	if o.RedisURLOf == nil {
		url := o.RedisURL
		o.RedisURLOf = func(int) string { return url }
	}
	if o.EnvOf == nil {
		o.EnvOf = func(int) []string { return nil }
	}
	if o.NodeYAMLOf == nil {
		o.NodeYAMLOf = func(int) string { return "" }
	}
	if o.DatabasesYAMLOf == nil {
		databases := o.DatabasesYAML
		o.DatabasesYAMLOf = func(int) string { return databases }
	}
}

// yaml is the configuration file of one node.
func (o *Options) yaml(node int) string {
	var b strings.Builder
	own := indent(o.NodeYAMLOf(node))
	if o.JobsYAML == "" && !strings.Contains(own, "candidate:") {
		own += "  candidate: true\n" // a node without jobs campaigns only if it says so
	}
	fmt.Fprintf(&b, "node:\n  id: n%d\n%sredis:\n  url: %q\n%s", node+1, own, o.RedisURLOf(node), indent(o.RedisYAML))
	more := ""
	if o.HTTPYAML != "" {
		more = ", " + o.HTTPYAML
	}
	fmt.Fprintf(&b, "http: {listen: \"127.0.0.1:0\"%s}\nlog: {level: %s, format: json}\n", more, o.LogLevel)
	fmt.Fprintf(&b, "election:\n  lock_key: %q\n  ttl: %v\n%s", o.LockKey, o.TTL, indent(o.ElectionYAML))
	if databases := o.DatabasesYAMLOf(node); databases != "" {
		b.WriteString("databases:\n" + indent(databases))
	}
	b.WriteString(o.TopYAML)
	if o.JobsYAML != "" {
		b.WriteString("jobs:\n" + indent(o.JobsYAML))
	}
	return b.String()
}

// indent moves text under a key: its first line to two spaces, the others with it.
func indent(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) != "" {
			lines = append(lines, strings.TrimRight(strings.ReplaceAll(line, "\t", "  "), "\n"))
		}
	}
	if len(lines) == 0 {
		return ""
	}
	common := len(lines[0]) - len(strings.TrimLeft(lines[0], " "))
	for i, line := range lines {
		cut := min(common, len(line)-len(strings.TrimLeft(line, " ")))
		lines[i] = "  " + line[cut:] + "\n"
	}
	return strings.Join(lines, "")
}

// DatabaseYAML is an entry for DatabasesYAML.
func DatabaseYAML(name string, db *testsupport.Database) string {
	return fmt.Sprintf("%s: {driver: %s, dsn: %q}\n", name, db.Driver, db.DSN)
}

// environment is the tests' own without what baton or systemd would read, and extra.
func environment(extra []string) []string {
	var env []string
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		switch {
		case strings.HasPrefix(name, "BATON_"), strings.HasPrefix(name, "OTEL_"), name == "RUNTIME_DIRECTORY", name == "NOTIFY_SOCKET",
			name == "WATCHDOG_USEC", name == "WATCHDOG_PID", name == "SERVICE_RESULT", name == "CREDENTIALS_DIRECTORY":
		default:
			env = append(env, v)
		}
	}
	return append(env, extra...)
}
