package hosts

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/gomodule/redigo/redis"
)

func TestAReloadChangesJobsAndNothingElse(t *testing.T) {
	const job = "- {name: %, schedule: '@every 1s', command: [/bin/true]}\n"
	one := strings.ReplaceAll(job, "%", "one")
	s := newSite(t, plan{config: "jobs:\n" + one})
	leader := s.settled()
	pid, epoch, owner := leader.MainPid(unit), s.epoch(), s.owner()
	runs := func(name string) int {
		n, err := redis.Int(s.conn.Do("XLEN", "{"+lockKey+"}:job:"+name+":runs"))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	s.Await("a run", func() bool { return runs("one") > 0 })
	good, _ := leader.Read(conffile)

	leader.WriteMode(conffile, good+strings.ReplaceAll(job, "%", "two"), "0644")
	leader.Must("systemctl", "reload", unit)
	s.Await("a run of the new job", func() bool { return runs("two") > 0 })

	// The old configuration stays in force, and everybody who asks is told.
	leader.WriteMode(conffile, good+"- {name: three, schedule: 'every now and then', command: [/bin/true]}\n", "0644")
	if r := leader.Run("systemctl", "reload", unit); r.Code == 0 {
		t.Error("systemctl reload of a wrong configuration succeeds")
	}
	if state := leader.Property(unit, "ActiveState"); state != "active" {
		t.Errorf("after a reload that failed the service is %s", state)
	}
	_, metrics := s.get(leader, "/metrics")
	if !strings.Contains(metrics, "baton_config_last_reload_successful 0") {
		t.Error("the metrics do not tell of the failed reload")
	}
	if log := leader.Journal(unit); !strings.Contains(log, "the old one stays in force") || !strings.Contains(log, "every now and then") {
		t.Errorf("the journal does not tell of the failed reload, or not of its reason:\n%s", log)
	}
	before := runs("two")
	s.Await("two more runs under the old configuration", func() bool { return runs("two") >= before+2 })
	var status struct {
		Jobs []struct{ Name string }
	}
	_, body := s.get(leader, "/api/v1/status")
	if err := json.Unmarshal([]byte(body), &status); err != nil || len(status.Jobs) != 2 {
		t.Errorf("the status has the jobs %v, %v", status.Jobs, err)
	}
	if leader.MainPid(unit) != pid || s.epoch() != epoch || s.owner() != owner {
		t.Errorf("process %d, epoch %d and owner %s have become %d, %d and %s", pid, epoch, owner, leader.MainPid(unit), s.epoch(), s.owner())
	}
	if n := leader.Property(unit, "NRestarts"); n != "0" {
		t.Errorf("the service was restarted %s times", n)
	}
	leader.WriteMode(conffile, good, "0644")
	leader.Must("systemctl", "reload", unit)
	if _, metrics := s.get(leader, "/metrics"); !strings.Contains(metrics, "baton_config_last_reload_successful 1") {
		t.Error("the metrics do not tell that a reload has succeeded again")
	}
}
