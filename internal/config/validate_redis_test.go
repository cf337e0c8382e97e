package config

import (
	"strings"
	"testing"
)

const wantURL = "write redis://host:port/db, rediss://host:port/db for TLS, or unix:///path/to/redis.sock"

// sentinels is a valid deployment behind Sentinels.
const sentinels = "master: m, addresses: [\"a:1\", \"b:1\"]"

func TestBadDeploymentIsReportedAtItsPlaceWithTheRemedy(t *testing.T) {
	const keep = "keep one of them: url for one server, sentinel for one with replicas, cluster for a Redis Cluster"
	for _, tc := range []struct{ name, redis, want string }{
		{"scheme", `url: "http://h:1"`, "1:9: redis.url: " + wantURL},
		{"no host", `url: "redis:///0"`, "1:9: redis.url: " + wantURL},
		{"no scheme", `url: localhost`, "1:9: redis.url: " + wantURL},
		{"no url", `url: "redis://:secret@%zz"`, "1:9: redis.url: not a URL; " + wantURL},
		{"port", `url: "redis://h:99999"`, "1:9: redis.url: " + wantURL},
		{"database", `url: "redis://h/x"`, "1:9: redis.url: the part behind the port or ?db= is the number of a database; " + wantURL},
		{"negative database", `url: "rediss://h/-1"`, "1:9: redis.url: the part behind the port or ?db= is the number of a database; " + wantURL},
		{"query", `url: "valkey://h/0?ssl=1"`, "1:9: redis.url: has a ? or # part, which has no effect; " + wantURL},
		{"Sentinel as a URL", `url: "redis+sentinel://h:26379/mymaster"`, "1:9: redis.url: a URL is one server; remove it, and write the Sentinels under redis.sentinel"},
		{"socket with two slashes", `url: "unix://run/redis.sock"`, "1:9: redis.url: a socket's URL has three slashes and then its path; write unix:///path/to/redis.sock"},
		{"socket without slashes", `url: "unix:/run/redis.sock"`, "1:9: redis.url: a socket's URL has three slashes and then its path; write unix:///path/to/redis.sock"},
		{"socket without a path", `url: "unix:///"`, "1:9: redis.url: a socket's URL has three slashes and then its path; write unix:///path/to/redis.sock"},
		{"socket's query", `url: "unix:///s?db=1&x=2"`, "1:9: redis.url: only ?db=N may follow a socket's path; write unix:///path/to/redis.sock?db=0"},
		{"socket's database", `url: "unix:///s?db=x"`, "1:9: redis.url: the part behind the port or ?db= is the number of a database; " + wantURL},
		{"user alone", `url: "redis://joe@h"`, "1:9: redis.url: has a user without a password; set username: and password_file: instead"},

		{"url and sentinel", `url: "redis://h", sentinel: {` + sentinels + `}`, "1:27: redis.sentinel: redis.url is set too; " + keep},
		{"url and cluster", `cluster: ["a:1"], url: "redis://h"`, "1:9: redis.cluster: redis.url is set too; " + keep},
		{"sentinel and cluster", `cluster: ["a:1"], sentinel: {` + sentinels + `}`, "1:9: redis.cluster: redis.sentinel is set too; " + keep},
		{"database beside url", `database: 1, url: "redis://h"`, "1:9: redis.database: a URL has its database at its own end, redis://host:port/db or unix:///path?db=0; write it there and remove this"},
		{"database beside the default url", `database: 1`, "1:9: redis.database: a URL has its database at its own end, redis://host:port/db or unix:///path?db=0; write it there and remove this"},
		{"database of a cluster", `cluster: ["a:1"], database: 1`, "1:27: redis.database: a Redis Cluster has only database 0; remove this"},
		{"database below 0", `sentinel: {` + sentinels + `}, database: -1`, "1:59: redis.database: -1: must be 0 or more"},
		{"database that is no number", `database: 1.5`, "1:9: redis.database: write a whole number here"},

		{"empty cluster", `cluster: []`, "1:9: redis.cluster: required: at least one host:port, for example [10.0.0.1:7000]"},
		{"cluster that is no list", `cluster: "a:1"`, "1:9: redis.cluster: write a list here, for example [a, b] or lines that begin with a dash"},
		{"node without a port", `cluster: [a, "b:1"]`, "1:19: redis.cluster[0]: write host:port, for example 10.0.0.1:7000"},
		{"node without a host", `cluster: ["b:1", ":1"]`, "1:26: redis.cluster[1]: write host:port, for example 10.0.0.1:7000"},
		{"node's port", `cluster: ["b:0"]`, "1:19: redis.cluster[0]: write host:port, for example 10.0.0.1:7000"},
		{"node as a URL", `cluster: ["redis://:secret@h:1"]`, "1:19: redis.cluster[0]: write host:port alone, for example 10.0.0.1:7000; user and password have keys of their own, and tls: {} turns on TLS"},
		{"node twice", `cluster: ["a:1", "b:1", "a:1"]`, "1:33: redis.cluster[2]: the same as redis.cluster[0]; write each once"},

		{"sentinel without anything", `sentinel: {}`, "1:9: redis.sentinel.addresses: required: at least one host:port, for example [10.0.0.1:26379]\n1:9: redis.sentinel.master: required; for example mymaster, the name under which the Sentinels watch the master"},
		{"sentinel that is a list", `sentinel: ["a:1"]`, "1:9: redis.sentinel: write key: value pairs here"},
		{"sentinel's key", `sentinel: {` + sentinels + `, adresses: []}`, "1:58: redis.sentinel.adresses: unknown key; did you mean addresses?"},
		{"sentinel's address", `sentinel: {master: m, addresses: ["a:1", b]}`, "1:50: redis.sentinel.addresses[1]: write host:port, for example 10.0.0.1:26379"},
		{"sentinel's passwords", `sentinel: {` + sentinels + `, password: x, password_file: /x}`, "1:58: redis.sentinel.password: password_file is set too; keep one of them"},
		{"sentinel's user alone", `sentinel: {` + sentinels + `, username: joe}`, "1:58: redis.sentinel.username: has no effect without a password; set password_file too"},

		{"no quorum", `quorum: []`, "1:9: redis.quorum: 0 masters; write 3 or 5, because with fewer than 3 the election stops when one master is unavailable"},
		{"quorum of two", `quorum: ["redis://a", "redis://b"]`, "1:9: redis.quorum: 2 masters; write 3 or 5, because with fewer than 3 the election stops when one master is unavailable"},
		{"quorum with a bad url", `quorum: ["redis://a", "10.0.0.1:1", "redis://c"]`, "1:31: redis.quorum[1]: not a URL; " + wantURL},
		{"quorum with an empty url", `quorum: ["redis://a", null, "redis://c"]`, "1:31: redis.quorum[1]: " + wantURL},
		{"master twice", `quorum: ["redis://a", "redis://b", "redis://A:6379/1"]`, "1:44: redis.quorum[2]: the same server as redis.quorum[0]; the masters must be independent of each other"},
		{"master twice without a port", `quorum: ["redis://a:6379", "redis://b", "redis://A"]`, "1:49: redis.quorum[2]: the same server as redis.quorum[0]; the masters must be independent of each other"},
		{"socket twice", `quorum: ["unix:///a", "unix:///b", "unix:///a?db=1"]`, "1:44: redis.quorum[2]: the same server as redis.quorum[0]; the masters must be independent of each other"},
		{"quorum beside a cluster", `cluster: ["a:1"], quorum: ["redis://a", "redis://b", "redis://c"]`, "1:27: redis.quorum: quorum needs redis.url, which names the server with the data; remove quorum, or write url instead of sentinel or cluster"},

		{"two passwords", `url: "redis://:x@h", password_file: /x`, "1:30: redis.password_file: redis.url has a password too; keep one of them"},
		{"two passwords in the file", `url: "redis://:x@h", password: x`, "1:30: redis.password: redis.url has a password too; keep one of them"},
		{"password and its file", `password: x, password_file: /x`, "1:9: redis.password: password_file is set too; keep one of them"},
		{"two users", `url: "redis://u:x@h", username: v`, "1:31: redis.username: redis.url has a user too; keep one of them"},
		{"a user without a password", `username: v`, "1:9: redis.username: has no effect without a password; set password_file too"},

		{"tls without encryption", `tls: {ca_file: /ca}, url: "redis://h"`, "1:9: redis.tls: redis.url is not encrypted; write rediss:// there, or remove tls"},
		{"tls without encryption of Valkey", `url: "valkey://h", tls: {}`, "1:28: redis.tls: redis.url is not encrypted; write valkeys:// there, or remove tls"},
		{"tls beside the default url", `tls: {}`, "1:9: redis.tls: redis.url is not encrypted; write rediss:// there, or remove tls"},
		{"tls of a socket", `url: "unix:///s", tls: {}`, "1:27: redis.tls: a Unix socket is not encrypted; remove tls"},
		{"tls that is on", `cluster: ["a:1"], tls: true`, "1:27: redis.tls: write key: value pairs here"},
		{"certificate without a key", `url: "rediss://h", tls: {cert_file: /c}`, "1:34: redis.tls.cert_file: needs key_file too, the certificate's private key"},
		{"key without a certificate", `url: "rediss://h", tls: {key_file: /c}`, "1:34: redis.tls.key_file: needs cert_file too, the key's certificate"},
		{"server name with a port", `url: "rediss://h", tls: {server_name: "h:1"}`, "1:34: redis.tls.server_name: write a host name alone, as in the server's certificate"},
	} {
		t.Run(tc.name, func(t *testing.T) { wantProblems(t, "redis: {"+tc.redis+"}\n", tc.want) })
	}
}

func TestGoodDeployments(t *testing.T) {
	const quorum = `quorum: ["redis://a", "rediss://u:p@b:6380/2", "redis://c:1"]`
	for _, redis := range []string{
		`url: "redis://h"`, `url: "rediss://[::1]:6380/15"`, `url: "valkey://u:p@h:1"`, `url: "valkeys://h:1/0"`, `url: "REDIS://h"`,
		`url: "unix:///run/redis.sock"`, `url: "unix:///run/redis.sock?db=3"`, `url: "unix://u:p@/run/redis.sock"`,
		`url: "redis://:p@h", username: joe`, `username: joe, password: p`, `password_file: /p`, `database: 0`,
		`sentinel: {` + sentinels + `}, database: 3, username: joe, password: p`,
		`sentinel: {` + sentinels + `, username: joe, password_file: /p}, tls: {}`,
		`cluster: ["a:1", "[::1]:7000"], password_file: /p, database: 0, tls: {ca_file: /ca, cert_file: /c, key_file: /k, server_name: "::1"}`,
		`url: "rediss://h", tls: {server_name: redis.internal}`, `url: "rediss://h", tls: {}`,
		`quorum: ["unix:///a", "unix:///A", "redis://a"]`, quorum, quorum + `, url: "redis://a"`, quorum + `, tls: {ca_file: /ca}`, `url: null, sentinel: null, cluster: null, quorum: null, tls: null`,
	} {
		c, err := read(t, "redis: {"+redis+"}\n", nil, nil)
		if err != nil {
			t.Errorf("%s: %v", redis, err)
			continue
		}
		// The output of Show and the output of Encode can both be read back.
		for name, out := range map[string][]byte{"Show": Show(c), "Encode": Encode(c)} {
			again, err := read(t, string(out), nil, nil)
			if err != nil || string(Show(again)) != string(Show(c)) {
				t.Errorf("%s of %s: %v\n%s", name, redis, err, out)
			}
		}
	}
}

func TestElectionSettingsThatContradictAreRefused(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{"priority below 0", "node: {priority: -1}", "1:8: node.priority: -1: must be from 0 to 1000; of two nodes, the one with the higher priority leads"},
		{"priority above 1000", "node: {priority: 1001}", "1:8: node.priority: 1001: must be from 0 to 1000; of two nodes, the one with the higher priority leads"},
		{"priority in words", "node: {priority: high}", "1:8: node.priority: write a whole number here"},
		{"priority that overflows", "node: {priority: 99999999999999999999}", "1:8: node.priority: write a whole number here"},
		{"priority that is a list", "node: {priority: [1]}", "1:8: node.priority: write a whole number here"},
		{"candidate", "node: {candidate: no}", "1:8: node.candidate: write true or false here"},
		{"candidate that is a list", "node: {candidate: [true]}", "1:8: node.candidate: write true or false here"},
		{"acquire", "election: {acquire: redlock}", `1:12: election.acquire: "redlock" is not known here; write lua or setnx`},
		{"lock format", "election: {lock_format: hash}", `1:12: election.lock_format: "hash" is not known here; write string or redisson`},
		{"near miss", "election: {lock_format: reddison}", `1:12: election.lock_format: "reddison" is not known here; did you mean redisson?`},
		{"Redisson without scripts", "election: {acquire: setnx, lock_format: redisson}", "1:28: election.lock_format: redisson needs scripts, and acquire: setnx is for servers that forbid them; remove one of the two"},
		{"replicas below 0", "election: {wait_replicas: -1}", "1:12: election.wait_replicas: -1: must be 0 or more"},
		{"replicas of a quorum", `{redis: {quorum: ["redis://a", "redis://b", "redis://c"]}, election: {wait_replicas: 1}}`,
			"1:71: election.wait_replicas: the lock is on the masters of redis.quorum, which have no replicas; remove one of the two"},
		{"abdication within the lease", "election: {ttl: 20s, abdicate_after: 19s}", "1:22: election.abdicate_after: 19s is shorter than the ttl, 20s; raise it, or leave it out"},
		{"abdication never", "election: {abdicate_after: 0s}", `1:12: election.abdicate_after: bad duration "0s": must be more than 0; leave it out for the default`},
	} {
		t.Run(tc.name, func(t *testing.T) { wantProblems(t, tc.text+"\n", tc.want) })
	}
}

func TestElectionSettingsReachTheirFields(t *testing.T) {
	c, err := read(t, `
node: {priority: 1000, candidate: false}
election: {acquire: setnx, lock_format: string, wait_replicas: 2, ttl: 40s}
`, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	e := c.Election
	if c.Node.Priority != 1000 || c.Node.IsCandidate() || e.Acquire != AcquireSetNX || e.LockFormat != FormatString || e.WaitReplicas != 2 {
		t.Errorf("%+v %+v", c.Node, e)
	}
	if e.AbdicateAfter != e.TTL {
		t.Errorf("the default abdicates after %v, sooner than one lease of %v", e.AbdicateAfter, e.TTL)
	}
	if !(Node{}).IsCandidate() {
		t.Error("a node is no candidate by default")
	}
	shown := string(Show(c))
	for _, line := range []string{"  priority: 1000\n", "  candidate: false\n", "  acquire: setnx\n", "  wait_replicas: 2\n", "  abdicate_after: 40s\n"} {
		if !strings.Contains(shown, line) {
			t.Errorf("no %q in\n%s", line, shown)
		}
	}
}

func TestBadMastersAreNotTakenForOneServer(t *testing.T) {
	c := Default()
	c.Node.ID, c.Redis.Quorum = "n", []string{"a", "a", "a"}
	err := c.WithDefaults().Validate(Checks{})
	if err == nil || strings.Count(err.Error(), "\n") != 2 || strings.Contains(err.Error(), "same") {
		t.Errorf("%v", err)
	}
}

func TestNothingAtAllIsAskedForAURL(t *testing.T) {
	err := Config{Node: Node{ID: "n"}}.Validate(Checks{})
	if err == nil || !strings.HasPrefix(err.Error(), "redis.url: required; for example redis://127.0.0.1:6379/0\n") && !strings.Contains(err.Error(), "\nredis.url: required; ") {
		t.Errorf("%v", err)
	}
}
