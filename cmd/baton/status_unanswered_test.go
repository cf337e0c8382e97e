package main

import (
	"net"
	"strings"
	"testing"

	"baton/cmd/baton/internal/cmdline"
)

func TestStatusSaysWhatTheConfigurationHasWhereRedisDoesNotAnswer(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts connections, but never answers
	if err != nil {
		t.Fatal(err)
	}
	address := silent.Addr().String()
	c := newCLI(t)
	c.file("baton.yaml", "redis: {url: 'redis://"+address+"'}\nelection: {lock_key: mine}\n"+
		"jobs:\n  - {name: report, schedule: '@every 1h', command: [/bin/true]}\n")
	for _, answers := range []string{"nothing", "a refusal"} {
		got := c.run("status", "--config", "baton.yaml")
		if got.code != cmdline.ExitFailure {
			t.Errorf("%s: exit code %d", answers, got.code)
		}
		for _, want := range []string{`Lock "mine": the leader is unknown`, "redis unavailable", address, "baton doctor", "report  @every 1h"} {
			if !strings.Contains(got.stdout, want) {
				t.Errorf("%s: it lacks %q:\n%s", answers, want, got.stdout)
			}
		}
		if strings.Contains(got.stdout, "no node leads") {
			t.Errorf("%s: it says who leads:\n%s", answers, got.stdout)
		}
		early := "redis " + address + ` has not answered yet. The configuration says: lock "mine", 1 job.`
		if said := strings.Contains(got.stderr, early); said != (answers == "nothing") {
			t.Errorf("%s: told early %t:\n%s", answers, said, got.stderr)
		}
		if err := silent.Close(); err != nil && answers == "nothing" {
			t.Fatal(err)
		}
	}
}
