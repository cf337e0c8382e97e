package daemon

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"go.uber.org/zap"

	"baton/internal/operate/direct"
	"baton/internal/redisledger"
	"baton/internal/redislock"
	"baton/internal/testsupport"
)

// A leader adds what it knows under its own name and term, when it is due and not before.
func TestASampleSaysWhoTookItAndIsTakenOnce(t *testing.T) {
	server := testsupport.StartRedis(t)
	n := looker(t, flushing(configFor(server.URL()), "sqlite", testsupport.SQLite(t).DSN))
	ledger := n.all()[0].ledger
	s := sampler{log: zap.NewNop(), ledger: ledger, nodeID: "db1", epoch: 42}
	levels := map[string]redisledger.Level{"views": {Lag: 1500 * time.Millisecond, Backlog: 7}}
	s.take(t.Context(), nil) // no flush was measured
	s.take(t.Context(), levels)
	s.take(t.Context(), levels)
	all, _, _, err := ledger.Samples(t.Context(), "", 0)
	if err != nil || len(all) != 1 {
		t.Fatalf("%+v, %v", all, err)
	}
	if got := all[0]; got.NodeID != "db1" || got.Epoch != 42 || got.Levels["views"] != levels["views"] {
		t.Errorf("%+v", got)
	}
	if told, err := n.samples(t.Context(), time.Time{}); err != nil || len(told) != 1 || told[0].Jobs["views"].LagSeconds != 1.5 || told[0].Jobs["views"].Backlog != 7 {
		t.Errorf("%+v, %v", told, err)
	}
}

// What is older than an hour is forgotten by the clock of Redis, and the samples of several
// locks stand in the order of time.
func TestSamplesAreOfTheLastHourAndInOrder(t *testing.T) {
	server := testsupport.StartRedis(t)
	c := flushing(configFor(server.URL()), "sqlite", testsupport.SQLite(t).DSN)
	other := c.Jobs[0]
	other.Name, other.Lock, other.Flush.From.Key = "reports", "second", "reports"
	c.Jobs = append(c.Jobs, other)
	n := looker(t, c)
	newest := time.Now().Add(-24 * time.Hour).Truncate(time.Second) // a clock that is a day behind
	for i, ago := range []time.Duration{time.Hour + 2*time.Minute, time.Hour, time.Minute, 30 * time.Second, 0} {
		for j, key := range []string{"baton", "second"} {
			at := newest.Add(-ago).UnixMilli() - int64(10*j)
			if _, err := server.Conn().Do("XADD", "{"+key+"}:samples", fmt.Sprintf("%d-0", at), "epoch", "3", "node", "a", "levels", fmt.Sprintf("job%d%d 1 2\n", i, j)); err != nil {
				t.Fatal(err)
			}
		}
	}
	all, err := n.samples(t.Context(), time.Time{})
	if err != nil || len(all) != 8 {
		t.Fatalf("%d samples, %v", len(all), err)
	}
	var at []int64
	for _, s := range all {
		at = append(at, s.At.UnixMilli())
	}
	if !slices.IsSorted(at) || !all[7].At.Equal(newest) {
		t.Errorf("%d", at)
	}
	later, err := n.samples(t.Context(), newest.Add(-30*time.Second))
	if err != nil || len(later) != 2 {
		t.Errorf("%d later than half a minute before the last, %v", len(later), err)
	}
}

func TestWhatANodeSeesAroundIt(t *testing.T) {
	asked := time.UnixMilli(1_700_000_000_000)
	came := asked.Add(2 * time.Second)
	const poll = 2 * time.Second
	p := redislock.Picture{Now: asked.Add(4 * time.Second), Owner: "o", Leader: "lead"}
	for id, n := range map[string]struct {
		ago  time.Duration
		hash string
	}{
		"lead": {0, "x"}, "like": {direct.SilentAfter(poll), "x"}, "other": {time.Second, "y"}, "gone": {direct.SilentAfter(poll) + time.Millisecond, "y"}, "long gone": {redislock.ForgottenAfter, "y"}, "forgotten": {redislock.ForgottenAfter + time.Millisecond, "y"},
	} {
		node := redislock.Node{ID: id, SeenMS: p.Now.Add(-n.ago).UnixMilli()}
		node.ConfigHash = n.hash
		p.Nodes = append(p.Nodes, node)
	}
	s := surroundings(p, poll, asked, came)
	if s.Live != 3 || s.Gone != 2 || s.Drifted != 1 || s.Paused || s.Offset != 3*time.Second {
		t.Errorf("%+v", s)
	}
	p.Paused = &redislock.Pause{}
	if !surroundings(p, poll, asked, came).Paused {
		t.Error("it is paused")
	}
}
