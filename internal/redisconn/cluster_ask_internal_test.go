package redisconn

import (
	"slices"
	"testing"

	"baton/internal/testsupport"
)

// While a slot is being moved, two of its keys may be at two nodes. After the move, the keys are at a node other than the node of the
// connection.
func TestAQuestionIsFollowedToWhereItsKeysAre(t *testing.T) {
	t.Parallel()
	cluster := testsupport.StartCluster(t)
	store, err := Open(Options{Cluster: cluster.Addresses()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	keys := []string{"{k}first", "{k}moved", "{k}none", "{k}last"}
	c, err := store.Conn(t.Context(), keys[0])
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, key := range []string{keys[0], keys[1], keys[3]} {
		if _, err := c.Do("HSET", key, "f", key+"'s", "h", "x"); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"{k}first's", "-", "x", "{k}moved's", "-", "x", "-", "-", "-", "{k}last's", "-", "x"}
	ask := func(when string) {
		t.Helper()
		for range 2 {
			if got, err := hmget(t.Context(), c, keys, "f", "g", "h"); err != nil || !slices.Equal(got, want) {
				t.Errorf("%s: %q, %v", when, got, err)
			}
		}
	}
	ask("before")
	from := cluster.Owner(keys[0])
	to := from
	for _, key := range []string{"a", "b", "c", "d", "e", "f"} {
		if r := cluster.Owner(key); r != from {
			to = r
		}
	}
	move := cluster.BeginMove(keys[0], to)
	if err := move.MoveKeys(keys[1]); err != nil {
		t.Fatal(err)
	}
	ask("on the way")
	if err := move.Finish(); err != nil {
		t.Fatal(err)
	}
	ask("there")
	if c.Err() == nil {
		t.Error("a connection that was moved would be kept")
	}
}
