package source

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gomodule/redigo/redis"

	"baton/internal/flush"
	"baton/internal/flush/mapping"
	"baton/internal/flush/row"
	"baton/internal/flush/source/paging"
	"baton/internal/flush/source/staging"
	"baton/internal/redisconn"
	"baton/internal/redisconn/redistest"
)

func (g *rig) zset(o IndexedOptions) *Zset {
	g.T.Helper()
	return zsetOn(g.T, g.store, o)
}

func zsetOn(t testing.TB, store *redisconn.Store, o IndexedOptions) *Zset {
	t.Helper()
	o.Job, o.Key, o.Changed, o.RemoveEvery = "board", "board", "changed:board", 1
	if o.Inputs == nil {
		o.Inputs = []string{row.InputMember, row.InputScore}
	}
	return made(t, NewZset, store, o)
}

// score sets a score as a producer must; nil removes the member.
func (g *rig) score(zset bool, member string, score any) {
	g.T.Helper()
	g.Send("MULTI")
	if score == nil {
		g.Send("ZREM", "board", member)
	} else {
		g.Send("ZADD", "board", score, member)
	}
	if zset {
		g.Send("ZADD", "changed:board", 1, member)
	} else {
		g.Send("SADD", "changed:board", member)
	}
	g.Do("EXEC")
}

// all returns the pending records, as texts by their member.
func all(t *testing.T, src flush.Source) map[string]string {
	t.Helper()
	got := map[string]string{}
	for _, p := range readAll(t, src, stageNow(t, src, "all")) {
		for _, r := range p.Records {
			got[r.Key] = rowText(r)
			if r.Gone {
				got[r.Key] += " gone"
			}
		}
	}
	return got
}

func TestChangedMembersAreRows(t *testing.T) {
	for _, zset := range []bool{false, true} {
		g, db := newRig(t), newDatabase()
		src := g.zset(IndexedOptions{PageRows: 7})
		want := map[string]string{}
		for i := range 100 {
			member := fmt.Sprint("ann ", i)
			g.score(zset, member, i)
			want[member] = member + "|" + fmt.Sprint(i)
		}
		g.Do("ZADD", "board", 1, "never marked")
		db.drain(t, src)
		same(t, "rows", want, db.rows())

		g.score(zset, "ann 5", 2.5)
		want["ann 5"] = "ann 5|2.5"
		g.score(zset, "ann 6", nil)
		delete(want, "ann 6")
		g.score(zset, "ann 7", nil)
		g.score(zset, "ann 7", 70)
		want["ann 7"] = "ann 7|70"
		for _, member := range []string{"", "\x00\xff", "{a}", "日本語", strings.Repeat("long", 1<<14)} {
			g.score(zset, member, -1)
			want[member] = member + "|-1"
		}
		db.drain(t, src)
		same(t, "rows after changes", want, db.rows())
		g.nothingLeft()
		if n := g.Num("ZCARD", "board"); n != 105 {
			t.Errorf("the sorted set has %d members", n)
		}
	}
}

func TestMembersOfASetThatIsGoneAreGone(t *testing.T) {
	g := newRig(t)
	g.score(false, "a", 1)
	g.score(false, "b", 2)
	g.Do("DEL", "board")
	same(t, "records", map[string]string{"a": "a|- gone", "b": "b|- gone"}, all(t, g.zset(IndexedOptions{})))
}

func TestWhatBecomesOfARowWhoseMemberIsGoneIsTheJobsChoice(t *testing.T) {
	for choice, want := range map[mapping.OnMissing]map[string]string{
		mapping.MissingDelete: {}, mapping.MissingIgnore: {"a": "a|1"}, mapping.MissingNull: {"a": "a|-"},
	} {
		g, db := newRig(t), newDatabase()
		src := g.zset(IndexedOptions{})
		g.score(false, "a", 1)
		db.drain(t, src)
		g.score(false, "a", nil)
		cfg, err := db.config(src)
		if err != nil {
			t.Fatal(err)
		}
		cfg.OnMissing = choice
		p, err := flush.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Run(t.Context(), leader{1}); err != nil {
			t.Fatal(err)
		}
		same(t, fmt.Sprintf("rows with on_missing: %s", choice), want, db.rows())
	}
}

// Versions of Redis write the same double as different texts. The score stays the same.
func TestScoresArriveExactly(t *testing.T) {
	for text, want := range map[string]string{
		"0": "0", "-0": "0", "3": "3", "-17": "-17", "0.1": "0.1", "0.10000000000000001": "0.1", "2.5": "2.5",
		"1732438384.1230001": "1732438384.1230001", "9007199254740993": "9007199254740992", "1.152921504606847e+18": "1152921504606846976",
		"72057594037927950": "72057594037927952", "-9.2233720368547758e+18": "-9.223372036854776e+18",
		"9.9999999999999992e+22": "1e+23", "1e300": "1e+300", "9.9999999999999995e-08": "1e-07", "0.001": "0.001",
		"inf": "inf", "-inf": "-inf", "no number": "no number",
	} {
		if got := scoreText(text); got != want {
			t.Errorf("%q is delivered as %q, want %q", text, got, want)
		}
	}
	g := newRig(t)
	scores := []float64{0.1, 1e-320, math.MaxFloat64, -math.SmallestNonzeroFloat64, 1 << 53, 1<<63 + 2048, 1.0 / 3, 1732438384123456.75}
	for i, score := range scores {
		g.score(false, fmt.Sprint(i), strconv.FormatFloat(score, 'g', -1, 64))
	}
	g.score(false, "inf", "+inf")
	got := all(t, g.zset(IndexedOptions{Inputs: []string{row.InputScore}}))
	for i, score := range scores {
		if back, err := strconv.ParseFloat(got[fmt.Sprint(i)], 64); err != nil || back != score {
			t.Errorf("score %v arrives as %q", score, got[fmt.Sprint(i)])
		}
	}
	if got["inf"] != "inf" {
		t.Errorf("an infinite score arrives as %q", got["inf"])
	}
}

// One command for each member would be slow, and one command for all would block Redis.
func TestAnIndexOfManyMembersIsReadInPages(t *testing.T) {
	t.Parallel()
	g, db := newRig(t), newDatabase()
	const members = 20000
	want := map[string]string{}
	for i := range members {
		member := fmt.Sprint(i)
		g.Send("ZADD", "board", i*2, member)
		g.Send("SADD", "changed:board", member)
		want[member] = member + "|" + fmt.Sprint(i*2)
	}
	g.Do("")
	asked := 0
	src := zsetOn(t, watched(g.store, func(step string) error {
		if step == redistest.Before("ZMSCORE") {
			asked++
		}
		return nil
	}), IndexedOptions{PageRows: 2500, MemoryBudget: 256 << 10})
	if _, err := db.flush(t.Context(), src, nil); err != nil {
		t.Fatal(err)
	}
	same(t, "rows", want, db.rows())
	if asked < members/paging.Depth || asked > members/200 {
		t.Errorf("%d commands for %d members", asked, members)
	}
	g.nothingLeft()
}

func TestAKeyThatIsNoSortedSetFailsTheRunAndLosesNothing(t *testing.T) {
	g, db := newRig(t), newDatabase()
	src := g.zset(IndexedOptions{})
	g.Do("RPUSH", "board", "x")
	g.Do("SADD", "changed:board", "a")
	_, err := db.flush(t.Context(), src, nil)
	if !errors.Is(err, staging.ErrWrongType) || !strings.Contains(err.Error(), `"board" is not a sorted set`) ||
		!strings.Contains(err.Error(), "correct the key") {
		t.Errorf("a list: %v", err)
	}
	if _, err := src.Peek(t.Context(), 1); !errors.Is(err, staging.ErrWrongType) {
		t.Errorf("a preview: %v", err)
	}
	g.Do("DEL", "board")
	g.score(false, "b", 2)
	g.Do("ZADD", "board", 1, "a")
	db.drain(t, src)
	same(t, "rows", map[string]string{"a": "a|1", "b": "b|2"}, db.rows())
	g.nothingLeft()
}

func TestMarkedMembersAreFlushedAgain(t *testing.T) {
	g := newRig(t)
	g.Do("ZADD", "board", 1, "a", 2, "b")
	src := g.zset(IndexedOptions{})
	if err := src.Mark(t.Context(), "m", []string{"a", "c"}); err != nil {
		t.Fatal(err)
	}
	same(t, "records", map[string]string{"a": "a|1", "c": "c|- gone"}, all(t, src))
}

// Key and index are in different slots. The slot of the key is moving, with the key on the old node and then on the new one.
func TestMembersAreReadFromAClusterWhileTheirSlotMoves(t *testing.T) {
	t.Parallel()
	g := newClusterRig(t)
	if redisconn.Slot("board") == redisconn.Slot("changed:board") {
		t.Fatal("both are in one slot")
	}
	db, want := newDatabase(), map[string]string{}
	src := zsetOn(t, g.store, IndexedOptions{PageRows: 100})
	flushed := func(when string, score int) {
		t.Helper()
		for i := range 300 {
			member := fmt.Sprint(i)
			g.do("ZADD", "board", score+i, member)
			want[member] = member + "|" + fmt.Sprint(score+i)
		}
		g.do("SADD", redis.Args{"changed:board"}.AddFlat(slices.Collect(maps.Keys(want)))...)
		db.drain(t, src)
		same(t, when, want, db.rows())
	}
	flushed("rows", 0)
	move := g.begin("board")
	flushed("rows of a slot that is about to move", 1000)
	if err := move.MoveKeys("board"); err != nil {
		t.Fatal(err)
	}
	flushed("rows of a slot that is halfway", 2000)
	if err := move.Finish(); err != nil {
		t.Fatal(err)
	}
	flushed("rows of a slot that has moved", 3000)
}

func TestASortedSetOfWrongOptionsIsRefused(t *testing.T) {
	good := Options{Job: "board", Type: "zset", Key: "board", Changed: "changed:board"}
	with := func(change func(*Options)) Options { o := good; change(&o); return o }
	store := openStore(t, "redis://127.0.0.1:1")
	for _, c := range []struct {
		options Options
		inputs  []string
		want    string
	}{
		{good, []string{row.InputMember}, ""},
		{good, []string{"name"}, `no input "name"`},
		{with(func(o *Options) { o.Changed = "board" }), nil, "the sorted set itself"},
		{with(func(o *Options) { o.Changed = "" }), nil, "key is empty"},
		{with(func(o *Options) { o.Key = "board:[0-3]" }), nil, "looks like several keys"},
		{with(func(o *Options) { o.Job = "" }), nil, "name of its job"},
	} {
		d, err := Describe(c.options)
		if err == nil {
			_, err = d.Open(store, c.inputs)
		}
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v of %q: %v, want %q", c.options, c.inputs, err, c.want)
		}
	}
	if _, err := NewZset(store, IndexedOptions{Job: "j", Key: "k", Changed: "k"}); err == nil {
		t.Error("an index that is the sorted set")
	}
	d, _ := Describe(good)
	spec := mapping.Spec{Table: "t", Key: []string{"member"}, Columns: map[string]mapping.ColumnSpec{
		"member": {From: row.InputMember}, "place": {From: "$rank"},
	}}
	if err := spec.Check(d.Inputs, false); err == nil || !strings.Contains(err.Error(), "ORDER BY score DESC") {
		t.Errorf("a rank: %v", err)
	}
	if p := d.Access(false, false).Keys; len(p) != 1 || p[0].Key != "changed:board" || p[0].Names["R"] != "board" {
		t.Errorf("it uses %+v", p)
	}
}
