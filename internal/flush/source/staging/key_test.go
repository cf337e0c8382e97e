package staging

import (
	"errors"
	"fmt"
	"testing"

	"baton/internal/flush"
	"baton/internal/redisconn"
	"baton/internal/redisconn/redistest"
	"baton/internal/testsupport"
)

func TestMain(m *testing.M) { testsupport.Main(m) }

// A stage keeps its first id: staging again with another id changes nothing.
func TestAStageIsFrozenUnderItsID(t *testing.T) {
	r := testsupport.StartRedis(t)
	store := redistest.Open(t, redisconn.Options{URL: r.URL(), ClientName: "baton-test"})
	g := r.Client(t)
	k, err := New(store, "users", "changed", "set", "zset")
	if err != nil {
		t.Fatal(err)
	}
	g.Do("SADD", "changed", "1", "2", "3")
	st, ok, err := k.Stage(t.Context(), "a", "")
	if err != nil || !ok || st.ID != "a" || st.Size != 3 || st.Resumed {
		t.Fatalf("staged %+v, %v, %v", st, ok, err)
	}
	g.Do("SADD", "changed", "4")
	if st, ok, err = k.Stage(t.Context(), "b", ""); err != nil || !ok || st.ID != "a" || !st.Resumed {
		t.Fatalf("staged again %+v, %v, %v", st, ok, err)
	}
	other := flush.Stage{ID: "b"}
	for what, err := range map[string]error{
		"removed": k.Remove(t.Context(), other, []string{"1"}), "discarded": k.Discard(t.Context(), other),
	} {
		if !errors.Is(err, flush.ErrStaleStage) {
			t.Errorf("another stage was %s: %v", what, err)
		}
	}
	var ids []string
	for i := range 2*chunk + 1 {
		ids = append(ids, fmt.Sprint(i))
	}
	if err := k.Remove(t.Context(), st, ids); err != nil {
		t.Fatal(err)
	}
	if n, err := k.Backlog(t.Context()); err != nil || n != 1 {
		t.Errorf("%d changes wait, %v; want the one of meanwhile", n, err)
	}
	if err := k.Discard(t.Context(), st); err != nil {
		t.Error(err)
	}
	if n := g.Num("EXISTS", k.StageKey(), k.MetaKey()); n != 0 {
		t.Errorf("%d keys are left", n)
	}
}

func TestAKeyOfAnotherTypeIsRefused(t *testing.T) {
	r := testsupport.StartRedis(t)
	store := redistest.Open(t, redisconn.Options{URL: r.URL(), ClientName: "baton-test"})
	k, err := New(store, "users", "changed", "set", "zset")
	if err != nil {
		t.Fatal(err)
	}
	r.Client(t).Do("SET", "changed", "x")
	_, _, staged := k.Stage(t.Context(), "a", "")
	_, counted := k.Backlog(t.Context())
	for what, err := range map[string]error{
		"staged": staged, "counted": counted, "marked": k.MarkChanged(t.Context(), "a", []string{"1"}),
	} {
		if !errors.Is(err, ErrWrongType) {
			t.Errorf("a string is %s: %v", what, err)
		}
	}
	for _, c := range []struct{ job, live string }{{"", "changed"}, {"users", ""}, {"users", "a}"}} {
		if _, err := New(store, c.job, c.live, "set"); err == nil {
			t.Errorf("job %q stages beside %q", c.job, c.live)
		}
	}
}
