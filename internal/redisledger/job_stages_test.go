package redisledger

import (
	"maps"
	"testing"

	"baton/internal/testsupport"
)

// A leader finds a place without a stage and without a job, and is suspended before it removes the place. The next leader has a job that
// stages there. The late removal must not remove the place of that job.
func TestALateRemovalOfADeposedLeaderRemovesNoPlaceOfAPresentJob(t *testing.T) {
	g := newRig(t)
	proxy := g.redis.Proxy()
	deposed := NewLedger(openStore(t, g.redis.URLThrough(proxy)), LedgerOptions{LockKey: "baton"})
	leader := NewLedger(g.store, LedgerOptions{LockKey: "baton"})
	if err := deposed.NoteStages(t.Context(), map[string]string{"views": "views", "old": "old"}); err != nil {
		t.Fatal(err)
	}
	forget := func(edition string, key string) error {
		return deposed.ForgetStages(t.Context(), edition, []string{key})
	}
	holds := func(want map[string]string) (edition string) {
		t.Helper()
		noted, edition, err := deposed.NotedStages(t.Context())
		if err != nil || !maps.Equal(noted, want) {
			t.Errorf("the list has %v, %v, want %v", noted, err, want)
		}
		return edition
	}
	edition := holds(map[string]string{"views": "views", "old": "old"})
	if err := forget(edition, "old"); err != nil {
		t.Fatal(err)
	}
	edition = holds(map[string]string{"views": "views"})
	proxy.HangRequests()
	late := make(chan error, 1)
	go func() { late <- forget(edition, "views") }()
	if err := leader.NoteStages(t.Context(), map[string]string{"views": "views"}); err != nil {
		t.Fatal(err)
	}
	proxy.Unhang()
	if err := testsupport.Receive(t, "the late removal", late); err != nil {
		t.Fatal(err)
	}
	edition = holds(map[string]string{"views": "views"})
	if err := forget(edition, "views"); err != nil {
		t.Fatal(err)
	}
	holds(map[string]string{})
}
