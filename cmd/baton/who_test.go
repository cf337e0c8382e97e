package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"baton/cmd/baton/internal/cmdline"
	"baton/internal/diagnose"
)

func TestWhoHoldsWhichLockIsListed(t *testing.T) {
	c := newCLI(t)
	server := useRedis(t)
	c.env["BATON_REDIS"] = server.URL()
	c.env["BATON_TTL"] = lease
	c.want(cmdline.ExitOK, "no locks are held\n", "", "who")
	c.file("two.yaml", "jobs:\n  - {name: report, schedule: \"@yearly\", lock: reports, command: [\"true\"]}\n")
	c.daemon("--node-id", "db1", "--http", "127.0.0.1:0", "--config", "two.yaml")
	for _, key := range []string{"foreign"} { // in the form in which baton lock records it
		server.Client(t).Do("SET", key, "somebody", "PX", 60000)
		server.Client(t).Do("ZADD", "baton:locks", time.Now().UnixMilli(), key)
	}
	c.until("reports", "who", "--config", "two.yaml")
	c.until("baton  ", "who", "--config", "two.yaml")
	c.matches(c.run("who", "--config", "two.yaml"), cmdline.ExitOK,
		`(?s)^LOCK +NODE +EPOCH +FOR +LEASE LEFT\nbaton +db1 +…\d+ +\S+ +\S+\nforeign +\(not baton\) +- +- +\S+\nreports +db1 +…\d+ +\S+ +\S+\n$`, `^$`)
	var held []diagnose.Lock
	if err := json.Unmarshal([]byte(c.run("who", "--config", "two.yaml", "-o", "json").stdout), &held); err != nil || len(held) != 3 || held[0].Leader.NodeID != "db1" || held[0].Leader.Epoch == 0 || !held[1].Leader.Foreign {
		t.Errorf("-o json: %+v, %v", held, err)
	}
	// A key of another type is reported, and does not hide other locks.
	for _, command := range [][]any{{"RPUSH", "queue", "x"}, {"ZADD", "baton:locks", time.Now().UnixMilli(), "queue"}} {
		server.Client(t).Do(command[0].(string), command[1:]...)
	}
	c.matches(c.run("who", "--config", "two.yaml"), cmdline.ExitFailure,
		`(?s)^LOCK .*\nbaton +db1 .*\nforeign .*\nreports +db1 [^\n]*\n$`, `^baton: read the election of "queue": .*WRONGTYPE`)
}

func TestWhoListsOtherElectionsOfThisRedis(t *testing.T) {
	c := newCLI(t)
	server := useRedis(t)
	c.env["BATON_REDIS"] = server.URL()
	c.env["BATON_TTL"] = lease
	c.file("java.yaml", "election: {lock_key: billing, lock_format: redisson}\njobs:\n"+
		"  - {name: bill, schedule: \"@yearly\", command: [\"true\"]}\n")
	c.daemon("--node-id", "db2", "--http", "127.0.0.1:0", "--config", "java.yaml")
	c.matches(c.until("billing", "who"), cmdline.ExitOK,
		`^LOCK +NODE +EPOCH +FOR +LEASE LEFT\nbilling +db2 +…\d+ +\S+ +\S+\n$`, `^$`)
	c.until("billing", "lock", "--list")

	// This user may read its own election and the index.
	user := server.Client(t)
	user.Do("ACL", "SETUSER", "reporter", "reset", "on", ">only-for-this-test", "~baton", "~{baton}:*", "~baton:locks", "&*", "+@all")
	t.Cleanup(func() { user.Do("ACL", "DELUSER", "reporter") })
	c.env["BATON_REDIS"] = strings.Replace(server.URL(), "redis://", "redis://reporter:only-for-this-test@", 1)
	c.matches(c.run("who"), cmdline.ExitOK, `^LOCK .*\nbilling +\(no permission to read it\) +- +- +-\n$`, `^$`)
	c.matches(c.run("lock", "--list"), cmdline.ExitOK, `^LOCK .*\nbilling +\(no permission to read it\) +- +- +- +-\n$`, `^$`)
}
