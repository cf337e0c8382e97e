package status

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"baton/internal/diagnose"
	"baton/internal/status/statustest"
	"baton/internal/text"
)

// TestTheAPIDoesNotTellOfALeaderWhoseLeaseHasEnded checks that the API, and so the commands that ask it, show the same as the page.
func TestTheAPIDoesNotTellOfALeaderWhoseLeaseHasEnded(t *testing.T) {
	fresh := statustest.Sample(time.Now())
	fresh.Leader.LeaseLeft = 8000 * text.Millisecond
	fresh.Locks = []diagnose.Lock{{Key: "billing", Leader: &diagnose.Leader{NodeID: "db2", LeaseLeft: 20_000 * text.Millisecond}},
		{Key: "mail", Leader: &diagnose.Leader{NodeID: "db2", LeaseLeft: 1000 * text.Millisecond}}}
	fresh.Jobs[0].Running = &diagnose.Run{ID: "r1", NodeID: "db1", Started: fresh.Now}
	type leader struct {
		Leader  *diagnose.Leader
		Vacancy string
	}
	synctest.Test(t, func(t *testing.T) {
		away := false
		h := New(Config{Health: standby, Source: func(context.Context) (diagnose.Snapshot, error) {
			if away {
				return diagnose.Snapshot{}, errors.New("connection refused")
			}
			return fresh, nil
		}})
		ask := func() (diagnose.Snapshot, leader) {
			var l leader
			if err := json.Unmarshal(statustest.Get(h, "/api/v1/leader").Body.Bytes(), &l); err != nil {
				t.Fatal(err)
			}
			return apiState(t, statustest.Get(h, "/api/v1/status")), l
		}
		if s, l := ask(); s.Leader == nil || s.LastLeader != nil || l.Leader == nil || s.Jobs[0].Running == nil {
			t.Errorf("while all is well: %+v, %+v", s, l)
		}
		away = true
		time.Sleep(3 * time.Second)
		if s, l := ask(); s.Leader == nil || s.LastLeader != nil || l.Leader == nil || s.Locks[0].Leader == nil ||
			s.Locks[1].Leader != nil || s.Jobs[0].Running == nil {
			t.Errorf("its lease goes on: %+v, %+v", s, l)
		}
		time.Sleep(12 * time.Second)
		s, l := ask()
		if s.Leader != nil || s.LastLeader == nil || s.LastLeader.NodeID != "db1" || l.Leader != nil ||
			s.Locks[0].Leader == nil || s.Jobs[0].Running != nil {
			t.Errorf("its lease has ended: %+v, %+v", s, l)
		}
		const want = "the leader is unknown: db1 led when last seen, and its lease has run out since"
		if s.Vacancy != want || l.Vacancy != want {
			t.Errorf("why: %q, %q", s.Vacancy, l.Vacancy)
		}
		for _, n := range s.Nodes {
			if n.State == "leading" {
				t.Errorf("%s leads still", n.ID)
			}
		}
		away = false
		time.Sleep(time.Second)
		if s, _ := ask(); s.Leader == nil || s.LastLeader != nil || s.Vacancy != "" {
			t.Errorf("redis is back: %+v", s)
		}
	})
}
