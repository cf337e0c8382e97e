package inventory

import (
	"maps"
	"slices"
	"testing"

	"baton/internal/config"
	"baton/internal/daemon/site"
	"baton/internal/daemon/tasks"
	"baton/internal/daemon/work"
)

// Of hundreds of locks not every leader must prune every database, but no database may be left out.
func TestALedgerIsPrunedByTheLeaderOfTheJobsThatWriteIt(t *testing.T) {
	i := Inventory{Config: config.Config{Election: config.Election{LockKey: "own"}}, Databases: site.Databases{"a": nil, "b": nil, "unused": nil}}
	for _, j := range []config.Job{
		{Name: "flushes", Lock: "x", Flush: config.Flush{To: config.To{Database: "a"}}},
		{Name: "both", Lock: "x", Flush: config.Flush{To: config.To{Database: "b"}}},
		{Name: "command", Lock: "y", Command: []string{"true"}},
	} {
		i.Tasks = append(i.Tasks, work.Task{Task: tasks.Task{Config: j}})
	}
	for lock, want := range map[string][]string{"own": {"a", "b", "unused"}, "x": {"a", "b"}, "y": nil} {
		if got := slices.Sorted(maps.Keys(i.Workload(lock).ToPrune())); !slices.Equal(got, want) {
			t.Errorf("lock %q: %q, want %q", lock, got, want)
		}
	}
}
