package main

import (
	"encoding/json"
	"testing"

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
	for _, key := range []string{"foreign"} { // as baton lock notes it
		server.Client(t).Do("SET", key, "somebody", "PX", 60000)
		server.Client(t).Do("ZADD", "baton:locks", 1, key)
	}
	c.until("reports", "who", "--config", "two.yaml")
	c.until("baton  ", "who", "--config", "two.yaml")
	c.matches(c.run("who", "--config", "two.yaml"), cmdline.ExitOK,
		`(?s)^LOCK +NODE +EPOCH +FOR +LEASE LEFT\nbaton +db1 +…\d+ +\S+ +\S+\nforeign +\(not baton\) +- +- +\S+\nreports +db1 +…\d+ +\S+ +\S+\n$`, `^$`)
	var held []diagnose.Lock
	if err := json.Unmarshal([]byte(c.run("who", "--config", "two.yaml", "-o", "json").stdout), &held); err != nil || len(held) != 3 || held[0].Leader.NodeID != "db1" || held[0].Leader.Epoch == 0 || !held[1].Leader.Foreign {
		t.Errorf("-o json: %+v, %v", held, err)
	}
	// A key of another type is told of, and hides no other lock.
	for _, command := range [][]any{{"RPUSH", "queue", "x"}, {"ZADD", "baton:locks", 2, "queue"}} {
		server.Client(t).Do(command[0].(string), command[1:]...)
	}
	c.matches(c.run("who", "--config", "two.yaml"), cmdline.ExitFailure,
		`(?s)^LOCK .*\nbaton +db1 .*\nforeign .*\nreports +db1 [^\n]*\n$`, `^baton: read the election of "queue": .*WRONGTYPE`)
}
