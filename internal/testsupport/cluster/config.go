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
	Nodes int           // default 3; the names of the nodes are n1, n2, ...
	TTL   time.Duration // default 10s: long enough on a busy machine
	// RedisURL is the URL of the Redis for all nodes. It is required unless RedisURLOf is set. RedisURLOf may return another URL for each
	// node (0, 1, ...), for example the URL of a proxy.
	RedisURL   string
	RedisURLOf func(node int) string
	LockKey    string // default baton
	// These fields contain the settings under "redis:" (without url), "election:" (without lock_key and ttl), "databases:" and "jobs:". All
	// lines of a field may be indented by the same width.
	RedisYAML, ElectionYAML, DatabasesYAML, JobsYAML string
	// DatabasesYAMLOf may be set instead of DatabasesYAML. It returns the databases of one node.
	DatabasesYAMLOf func(node int) string
	// NodeYAMLOf returns the settings under node: other than the id.
	NodeYAMLOf func(node int) string
	LogLevel   string   // default info
	Env        []string // further environment variables of every node
	// EnvOf returns further environment variables of one node (0, 1, ...).
	EnvOf func(node int) []string
	// HTTPYAML contains further settings of http: for the same line, for example "token_file: /x".
	HTTPYAML string
	// TopYAML contains further sections of the file.
	TopYAML string
	// Program is the program to run instead of the result of Build.
	Program string
	// RuntimeDir gives every node a $RUNTIME_DIRECTORY, as systemd does.
	RuntimeDir bool
	// MayExit allows a node to end by itself. Otherwise such an end fails the test. For example, a node may end after it was frozen for
	// longer than its lease.
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

// yaml returns the content of one node's configuration file.
func (o *Options) yaml(node int) string {
	var b strings.Builder
	own := indent(o.NodeYAMLOf(node))
	if o.JobsYAML == "" && !strings.Contains(own, "candidate:") {
		own += "  candidate: true\n" // a node without jobs campaigns only with this setting
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

// indent indents a text for its place below a YAML key. The first line gets two spaces, and the other lines are shifted by the same width
// as the first line.
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

// DatabaseYAML returns an entry for Options.DatabasesYAML. The entry describes the database db under the given name.
func DatabaseYAML(name string, db *testsupport.Database) string {
	return fmt.Sprintf("%s: {driver: %s, dsn: %q}\n", name, db.Driver, db.DSN)
}

// environment returns this process' environment without the variables of baton and systemd, and adds extra.
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
