package daemon

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"go.uber.org/zap/zapcore"

	"baton/internal/daemon/site"
	"baton/internal/doctor"
	"baton/internal/redislock"
	"baton/internal/testsupport"
)

// Two processes with the same id cannot be distinguished, so both report this once, and other nodes see it.
func TestASecondProcessOfTheSameIDIsTold(t *testing.T) {
	t.Parallel()
	redis := testsupport.StartRedis(t, testsupport.RedisAOF())
	c := configFor(redis.URL())
	c.Node.ID = "db1"
	first := start(t, c, nil)
	page := func(r *running) { // a request for a page makes the node read the list of nodes
		resp, err := http.Get("http://" + r.address + "/api/v1/status")
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close() // the body is not read
	}
	page(first)
	second := start(t, c, nil)
	complaint := "another process has the same node.id"
	await(t, "the complaint", func() bool {
		page(first)
		return first.logs.FilterMessageSnippet(complaint).Len() > 0
	})
	told := first.logs.FilterMessageSnippet(complaint).All()
	if len(told) != 1 || told[0].Level != zapcore.ErrorLevel || told[0].ContextMap()["other_instance"] == told[0].ContextMap()["instance"] {
		t.Errorf("%+v", told)
	}
	look := func() redislock.ElectionState {
		locks, err := site.OpenLocks(c.WithDefaults())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = locks.Close() }()
		p, err := locks.State(t.Context(), c.WithDefaults().Election.LockKey)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	await(t, "the list to say so", func() bool {
		p := look()
		return len(p.Nodes) == 1 && p.Nodes[0].Twin != ""
	})
	found := doctor.Examine(t.Context(), c.WithDefaults(), doctor.Options{})
	if !slices.ContainsFunc(found, func(f doctor.Finding) bool {
		return f.Severity == doctor.SeverityError && f.Subject == `node "db1"` && strings.Contains(f.What, "two processes have this node.id")
	}) {
		t.Errorf("%+v", found)
	}
	for _, r := range []*running{second, first} {
		r.endsWell()
	}
}
