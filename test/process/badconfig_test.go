package process

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"baton/internal/testsupport/cluster"
)

// The commands run in a directory of their own on a configuration that is good
// but for one thing.
func TestBadConfigurationIsRefusedWithPlaceAndRemedy(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	const good = `
redis: {url: "redis://127.0.0.1:1/0"}
http: {listen: "off"}
databases:
  main: {driver: sqlite, dsn: /tmp/none.db}
`
	for _, c := range []struct {
		name, yaml string
		args       []string
		code       int
		want       []string
	}{
		{"unknown key", good + "election:\n  lock_kye: shop\n", nil, 2,
			[]string{"baton.yaml:7:3: election.lock_kye: unknown key; did you mean lock_key?"}},
		{"bad duration", good + "election:\n  ttl: 10 sec\n", nil, 2,
			[]string{`baton.yaml:7:3: election.ttl: bad duration "10 sec"`, "for example 500ms, 10s or 1m30s"}},
		{"bad duration in a flag", good, []string{"--ttl", "10"}, 2,
			[]string{`--ttl: election.ttl: bad duration "10"`, "for example"}},
		{"refused ratio", good + "election:\n  ttl: 3s\n  drain: 2s\n", nil, 2,
			[]string{"baton.yaml:7:3: election: 2·heartbeat_interval + attempt_timeout + drain + margin must be less than ttl", "2·600ms + 300ms + 2s + 280ms = 3.78s", "raise ttl"}},
		{"unknown database", good + job("to: {database: mian, table: t, key: [id]}"), nil, 2,
			[]string{"baton.yaml:", "jobs[0].flush.to.database: ", "mian", "main"}},
		{"bad schedule", good + strings.Replace(job("to: {database: main, table: t, key: [id]}"), "@every 1s", "61 * * * *", 1), nil, 2,
			[]string{"baton.yaml:7:", "jobs[0].schedule: ", "61"}},
		{"several at once", good + "election:\n  ttl: soon\nlog: {level: loud}\n", nil, 2,
			[]string{"2 problems", "election.ttl: bad duration", `log.level: "loud" is not known here`}},
		{"no such file", "", nil, 2,
			[]string{"no such file or directory", "to write one: baton config init "}},
		{"listener in use", good, []string{"--http", taken.Addr().String()}, 1,
			[]string{"http.listen: ", taken.Addr().String(), "address already in use", "another baton"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "baton.yaml")
			if c.yaml != "" {
				if err := os.WriteFile(path, []byte(c.yaml), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			out := cluster.Command(t, soon, nil, append([]string{"run", "--config", path}, c.args...)...)
			if out.Code != c.code {
				t.Errorf("code %d, want %d", out.Code, c.code)
			}
			for _, want := range c.want {
				if !strings.Contains(out.Stderr, want) {
					t.Errorf("standard error does not say %q:\n%s", want, out.Stderr)
				}
			}
			if out.Stdout != "" || strings.Contains(out.Stderr, "goroutine ") || strings.Contains(out.Stderr, "Usage:") {
				t.Errorf("not one clear error:\n%s%s", out.Stdout, out.Stderr)
			}
		})
	}
}

func job(to string) string {
	return "jobs:\n- {name: j, schedule: \"@every 1s\", flush: {from: {type: counters, key: v}, " + to + ", columns: {id: $field, v: $value}}}\n"
}
