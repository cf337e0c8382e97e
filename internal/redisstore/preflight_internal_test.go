package redisstore

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/testsupport"
)

// everyCommand is all that the preflight may ask for.
func everyCommand() []string {
	all := slices.Concat(lockCommands, lockScripted, ledgerCommands, []string{"HKEYS L"})
	for _, source := range []string{"counters", "hashes", "list", "stream", "scan"} {
		for _, kind := range []string{"hash", "set", "zset", "list", "stream"} {
			for _, key := range []string{"", "a:<id>"} {
				for _, watermark := range []bool{false, true} {
					for _, value := range []string{"hash", "string", "json", "set", "zset"} {
						all = append(all, PreflightUse{Type: source, Key: key, Watermark: watermark, Value: value, Retain: true, Wait: true}.commands(kind)...)
					}
				}
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// A command that is granted in docs/redis.md is asked for, so that none is forgotten
// when a source begins to send it; but for those that are no job's.
func TestThePreflightAsksForEveryCommandThatIsGranted(t *testing.T) {
	asked := map[string]bool{}
	for _, c := range everyCommand() {
		name, _, _ := strings.Cut(c, " ")
		asked[strings.ToLower(name)] = true
	}
	other := strings.Fields("watch unwatch exec discard info ping select wait client|setname role asking cluster|slots cluster|nodes " + // connections, and acquire: setnx
		"zadd zrevrange zremrangebyscore zremrangebyrank " + // the list of baton lock
		"sadd " + // a replay
		"blmove") // a list is waited for without it, if need be
	for _, arg := range DocumentedUser(t) {
		name, ok := strings.CutPrefix(arg.(string), "+")
		if ok && !asked[name] && !slices.Contains(other, name) {
			t.Errorf("docs/redis.md grants %s, and the preflight does not ask for it: add it to the source's commands in preflight_access.go", name)
		}
	}
}

// What Redis does not understand it refuses before it looks at permissions.
func TestRedisUnderstandsWhatThePreflightAsks(t *testing.T) {
	conn := testsupport.StartRedis(t).Conn()
	if _, err := conn.Do("MULTI"); err != nil {
		t.Fatal(err)
	}
	for _, c := range everyCommand() {
		words := strings.Fields(c)
		if words[0] == "MULTI" || words[0] == "EXEC" {
			continue
		}
		if reply, err := conn.Do(words[0], redis.Args{}.AddFlat(words[1:])...); err != nil || reply != "QUEUED" {
			t.Errorf("%s: %v, %v", c, reply, err)
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
		{"loading", "loading:1", "", "warning: it is loading its data"},
		{"managed, with a log", "aof_enabled:1", "", "info: its appendfsync could not be checked"},
		{"managed, without a word", "redis_version:7.0.0", "", "info: its persistence could not be checked"},
		{"managed, without", "aof_enabled:0", "", "warning: the append-only file is off, and its snapshots could not be checked"},
		{"without a word of eviction", "maxmemory:1", "", "info: its maxmemory-policy could not be checked"},
		{"a failed write", "aof_last_write_status:err", "", "error: its last write to the append-only file failed"},
		{"nearly full", "maxmemory:1000000 used_memory:950000 maxmemory_policy:noeviction", "", "warning: it uses 927 KiB of its maxmemory of 976 KiB"},
		{"a replica behind", "role:master connected_slaves:1 slave0:ip=10.0.0.2,port=6379,state=online,offset=1,lag=42", "", "warning: its replica 10.0.0.2:6379 is behind (online, last heard of 42 s ago)"},
		{"a replica that begins", "role:master connected_slaves:1 slave0:ip=10.0.0.2,port=6379,state=wait_bgsave,offset=0,lag=0", "", "warning: its replica 10.0.0.2:6379 is behind (wait_bgsave"},
		{"failover without a guard", "role:master connected_slaves:1", "min-replicas-to-write=0", "warning: min-replicas-to-write is 0"},
		{"failover with one", "role:master connected_slaves:1 min_slaves_good_slaves:1", "", ""},
		{"failover without a replica", "role:master connected_slaves:0", "", "warning: no replica follows it"},
	} {
		x := &examination{options: PreflightOptions{Uses: []PreflightUse{{}}}, failover: true}
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
