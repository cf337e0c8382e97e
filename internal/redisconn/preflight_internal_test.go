package redisconn

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// A setting that could not be read must not be reported as good.
func TestAServerKeepsWhatIsKnownThatItKeeps(t *testing.T) {
	for _, c := range []struct{ info, fsync, want string }{
		{"aof_enabled:1 maxmemory_policy:noeviction", "always", ", and persists its data"},
		{"aof_enabled:1 maxmemory_policy:noeviction", "everysec", ", and persists its data every second"},
		{"aof_enabled:1 maxmemory_policy:noeviction", "", ""},
		{"aof_enabled:1", "always", ""},
		{"aof_enabled:0 maxmemory_policy:noeviction", "always", ""},
		{"redis_version:7.0.0", "", ""}, // as the embedded Redis reports it
	} {
		f := facts{info: parseInfo(strings.ReplaceAll(c.info, " ", "\r\n")), config: map[string]string{"appendfsync": c.fsync}}
		if got := f.keeping(); got != c.want {
			t.Errorf("%s, appendfsync %q: %q, want %q", c.info, c.fsync, got, c.want)
		}
	}
}

func TestAServerIsCalledByItsOwnName(t *testing.T) {
	for info, want := range map[string]string{
		"redis_version:8.0.2": "Redis 8.0.2", "redis_version:7.2.4 server_name:valkey valkey_version:9.1.2": "Valkey 9.1.2",
	} {
		if got := (facts{info: parseInfo(strings.ReplaceAll(info, " ", "\r\n"))}).product(); got != want {
			t.Errorf("%s: %q, want %q", info, got, want)
		}
	}
}

// All places that describe this loss must use the same words.
func TestWhatEverysecLosesIsSaidAlike(t *testing.T) {
	for _, name := range []string{"docs/doctor.md", "docs/explanation/guarantees.md"} {
		text, err := os.ReadFile("../../" + name)
		if err != nil {
			t.Fatal(err)
		}
		flat := strings.Join(strings.Fields(string(text)), " ")
		about, loss, ok := strings.Cut(everysec, " changes, ")
		if !ok || !strings.Contains(flat, about) || !strings.Contains(flat, loss) {
			t.Errorf("%s says something else than %q", name, everysec)
		}
	}
}

func TestTheLongestTimeBetweenSnapshots(t *testing.T) {
	for save, want := range map[string]time.Duration{"": 0, "3600 1 300 100 60 10000": time.Hour, "60 1": time.Minute} {
		if got := longestSave(save); got != want {
			t.Errorf("save %q: %v, want %v", save, got, want)
		}
	}
}

func TestAFindingForEveryState(t *testing.T) {
	for _, c := range []struct{ name, info, config, want string }{
		{"old", "redis_version:5.0.7", "", "warning: its version is 5.0.7"},
		{"new", "redis_version:7.2.4", "", ""},
		{"a node of a Cluster", "redis_version:7.0.15 redis_mode:cluster cluster_enabled:1", "", "error: it is a node of a Cluster"},
		{"a Valkey node of a Cluster", "redis_version:7.2.4 server_mode:cluster cluster_enabled:1", "", "error: it is a node of a Cluster"},
		{"loading", "loading:1", "", "warning: it is loading its data"},
		{"managed, with a log", "aof_enabled:1", "", "info: its appendfsync could not be checked"},
		{"managed, without a word", "redis_version:7.0.0", "", "info: its persistence could not be checked"},
		{"managed, without", "aof_enabled:0", "", "warning: the append-only file is off, and its snapshots could not be checked"},
		{"without a word of eviction", "maxmemory:1", "", "info: its maxmemory-policy could not be checked"},
		{"a failed write", "aof_last_write_status:err", "", "error: its last write to the append-only file failed"},
		{"nearly full", "maxmemory:1000000 used_memory:950000 maxmemory_policy:noeviction", "",
			"warning: it uses 927 KiB of its maxmemory of 976 KiB"},
		{"a replica behind", "role:master connected_slaves:1 slave0:ip=10.0.0.2,port=6379,state=online,offset=1,lag=42", "",
			"warning: its replica 10.0.0.2:6379 is behind (online, last heard of 42 s ago)"},
		{"a replica that begins", "role:master connected_slaves:1 slave0:ip=10.0.0.2,port=6379,state=wait_bgsave,offset=0,lag=0", "",
			"warning: its replica 10.0.0.2:6379 is behind (wait_bgsave"},
		{"failover without a guard", "role:master connected_slaves:1", "min-replicas-to-write=0", "warning: min-replicas-to-write is 0"},
		{"failover with one", "role:master connected_slaves:1 min_slaves_good_slaves:1", "", ""},
		{"failover without a replica", "role:master connected_slaves:0", "", "warning: no replica follows it"},
		{"who only follows the stream", "role:master connected_slaves:1 slave0:ip=10.0.0.2,port=65536,state=online,offset=0,lag=1", "",
			"warning: no replica follows it"},
		{"a guard that counts followers", "role:master min_slaves_good_slaves:2", "", "warning: min-replicas-to-write counts baton"},
		{"a failover by hand", "role:master master_failover_state:waiting-for-sync", "",
			"warning: a FAILOVER waits (waiting-for-sync), and blocks writes"},
		{"a short backlog", "role:master repl_backlog_size:1048576 master_repl_offset:10485760 uptime_in_seconds:100", "",
			"warning: its replication backlog (repl-backlog-size 1 MiB) holds the writes of about 10s"},
	} {
		follows := []Access{{Follows: !strings.HasPrefix(c.name, "failover")}}
		x := &examination{options: PreflightOptions{Data: true, Accesses: follows}, failover: true}
		config := map[string]string{"save": "60 1"}
		if strings.HasPrefix(c.name, "managed") {
			config = nil
		}
		for pair := range strings.FieldsSeq(c.config) {
			name, value, _ := strings.Cut(pair, "=")
			config[name] = value
		}
		x.judge(facts{info: parseInfo(strings.ReplaceAll(c.info, " ", "\r\n")), config: config})
		var all []string
		for _, f := range x.findings {
			all = append(all, string(f.Severity)+": "+f.What)
		}
		if c.want != "" && !slices.ContainsFunc(all, func(s string) bool { return strings.HasPrefix(s, c.want) }) {
			t.Errorf("%s: got %q, want %q", c.name, all, c.want)
		}
		if c.want == "" && slices.ContainsFunc(all, func(s string) bool {
			return strings.Contains(s, "version") || strings.Contains(s, "min-replicas")
		}) {
			t.Errorf("%s: got %q", c.name, all)
		}
	}
}
