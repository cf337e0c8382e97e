package keys

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

// visited is a Visitor that records its calls.
type visited []string

func (v *visited) Key(db int, key []byte) { *v = append(*v, fmt.Sprintf("%d %s", db, key)) }
func (v *visited) Flushed(db int)         { *v = append(*v, fmt.Sprintf("flushed %d", db)) }
func (v *visited) Swapped(a, b int)       { *v = append(*v, fmt.Sprintf("swapped %d %d", a, b)) }

func entry(name string, flags string, first, last, step int) any {
	var all []any
	for f := range strings.FieldsSeq(flags) {
		all = append(all, f)
	}
	return []any{[]byte(name), int64(1), all, int64(first), int64(last), int64(step), []any{}}
}

// oldTable returns the table of a server before 7.0, which describes less.
func oldTable(t *testing.T) *Table {
	t.Helper()
	table := &Table{commands: map[string]*command{}}
	for _, e := range []any{
		entry("set", "write", 1, 1, 1), entry("mset", "write", 1, -1, 2), entry("del", "write", 1, -1, 1),
		entry("bitop", "write", 2, -1, 1),
		entry("rename", "write", 1, 2, 1), entry("zunionstore", "write movablekeys", 1, 1, 1),
		entry("sort", "write movablekeys", 1, 1, 1),
		entry("xreadgroup", "write movablekeys", 1, 1, 1), entry("get", "readonly", 1, 1, 1),
		entry("pfcount", "readonly may_replicate", 1, -1, 1),
		entry("publish", "pubsub may_replicate", 0, 0, 0), entry("odd", "write", 0, 0, 0), entry("flushdb", "write", 0, 0, 0),
		entry("swapdb", "write", 0, 0, 0), entry("move", "write", 1, 1, 1), entry("copy", "write", 1, 2, 1),
		entry("eval", "movablekeys", 0, 0, 0),
	} {
		name, c, err := parse(e)
		if err != nil {
			t.Fatal(err)
		}
		table.commands[name] = c
	}
	return table
}

func TestWhatACommandChangesIsSaid(t *testing.T) {
	table := oldTable(t)
	for _, c := range []struct {
		command string
		want    string // "?" means that the keys are unknown
	}{
		{"SET a 1", "4 a"}, {"sEt a 1", "4 a"}, {"MSET a 1 b 2", "4 a,4 b"}, {"DEL a b c", "4 a,4 b,4 c"}, {"BITOP AND a b", "4 a,4 b"},
		{"RENAME a b", "4 a,4 b"}, {"ZUNIONSTORE a 2 b c", "4 a"}, {"GET a", ""}, {"PFCOUNT a b", "4 a,4 b"}, {"PUBLISH a b", ""},
		{"ODD a", "?"}, {"NEVERHEARD a", "?"}, {"XREADGROUP GROUP g c STREAMS x >", "?"}, {"EVAL x 0", "?"}, {"", "?"},
		{strings.Repeat("x", 65), "?"}, {"SORT a", ""}, {"SORT a STORE b", "4 b"}, {"SORT a BY store GET store LIMIT 0 1 store c", "4 c"},
		{"SORT a STORE b STORE c", "4 c"}, {"SORT a STORE", ""}, {"FLUSHDB", "flushed 4"}, {"FLUSHDB ASYNC", "flushed 4"},
		{"SWAPDB 1 4", "swapped 1 4"}, {"SWAPDB 1", "?"}, {"SWAPDB 1 x", "?"}, {"MOVE a 2", "4 a,2 a"}, {"MOVE a x", "?"},
		{"MOVE a", "?"},
		{"COPY a b", "4 b"}, {"COPY a b DB 2 REPLACE", "2 b"}, {"COPY a b REPLACE db 3", "3 b"}, {"COPY a b DB", "?"},
		{"COPY a b DB x", "?"},
		{"SET", "?"}, {"RENAME a", "?"}, {"MSET a 1 LONG 2", "?"}, {"MSET a LONG", "4 a"}, {"LONG a", "?"}, {"SORT a STORE LONG", "?"},
	} {
		var args [][]byte
		for word := range strings.FieldsSeq(c.command) {
			if word == "LONG" {
				args = append(args, nil)
				continue
			}
			args = append(args, []byte(word))
		}
		var v visited
		known := table.Changes(4, args, &v)
		got := strings.Join(v, ",")
		if !known {
			got = "?"
		}
		if got != c.want {
			t.Errorf("%q: %q, want %q", c.command, got, c.want)
		}
	}
}

// Every key of a command must be found, at each place that a key specification can describe.
func TestKeySpecificationsAreFollowed(t *testing.T) {
	for _, c := range []struct {
		s    spec
		args string
		want string // the keys; "?" means that the command does not fit the specification
	}{
		{spec{index: 1, step: 1}, "c a b", "a"}, {spec{index: 1, last: -1, step: 1}, "c a b", "a b"},
		{spec{index: 1, last: -2, step: 1}, "c a b t", "a b"}, {spec{index: 1, last: -1, step: 2}, "c a 1 b 2", "a b"},
		{spec{index: 1, last: -1, limit: 2, step: 1}, "c a b x y", "a b"}, {spec{index: 3, step: 1}, "c a", "?"},
		{spec{index: 1, counted: true, firstKey: 1, step: 1}, "c 2 a b x", "a b"},
		{spec{index: 1, counted: true, firstKey: 1, step: 1}, "c 0 x", ""},
		{spec{index: 1, counted: true, firstKey: 1, step: 1}, "c 3 a b", "?"},
		{spec{index: 1, counted: true, firstKey: 1, step: 1}, "c x a b", "?"},
		{spec{index: 1, counted: true, firstKey: 1, step: 1}, "c", "?"},
		{spec{index: 1, counted: true, firstKey: 1, step: 1}, "c 99999999999 a", "?"},
		{spec{index: -1, keyword: []byte("store"), start: 2, step: 1}, "c a x STORE b", "b"},
		{spec{index: -1, keyword: []byte("store"), start: 2, step: 1}, "c a x y", ""},
		{spec{index: -1, keyword: []byte("keys"), start: -2, last: -1, step: 1}, "c a Keys b c", "b c"},
	} {
		var args [][]byte
		for word := range strings.FieldsSeq(c.args) {
			args = append(args, []byte(word))
		}
		first, last, ok := c.s.bounds(args)
		var got []string
		for at := first; ok && at > 0 && at <= last; at += c.s.step {
			got = append(got, string(args[at]))
		}
		if !ok {
			got = []string{"?"}
		}
		if !slices.Equal(got, strings.Fields(c.want)) {
			t.Errorf("%+v of %q: %q, want %q", c.s, c.args, got, c.want)
		}
	}
}

type nobody struct{ n int }

func (v *nobody) Key(int, []byte)  { v.n++ }
func (v *nobody) Flushed(int)      {}
func (v *nobody) Swapped(int, int) {}

func TestNothingIsAllocatedForACommand(t *testing.T) {
	table := oldTable(t)
	args := [][]byte{[]byte("MSET"), []byte("a"), []byte("1"), []byte("b"), []byte("2")}
	v := &nobody{}
	if n := testing.AllocsPerRun(100, func() { table.Changes(0, args, v) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkChanges(b *testing.B) {
	table := &Table{commands: map[string]*command{"hset": {specs: []spec{{index: 1, step: 1}}}}}
	args := [][]byte{[]byte("HSET"), []byte("user:1"), []byte("name"), []byte("x")}
	v := &nobody{}
	b.ReportAllocs()
	for b.Loop() {
		table.Changes(0, args, v)
	}
}

// specOf returns a key specification in the form of COMMAND in 7.0.
func specOf(begin, find string, numbers ...int64) any {
	names := map[string][]string{
		"index": {"index"}, "range": {"lastkey", "keystep", "limit"}, "keynum": {"keynumidx", "firstkey", "keystep"},
	}
	part := func(kind string) any {
		var of []any
		for _, name := range names[kind] {
			of, numbers = append(of, []byte(name), numbers[0]), numbers[1:]
		}
		return []any{[]byte("type"), []byte(kind), []byte("spec"), of}
	}
	return []any{[]byte("flags"), []any{"RW"}, []byte("begin_search"), part(begin), []byte("find_keys"), part(find)}
}

// If a server describes its commands with absurd numbers, no capture ends, but any key may have changed.
func TestAbsurdNumbersOfAServerMeanAnyKey(t *testing.T) {
	const huge = math.MaxInt64
	for name, spec := range map[string]any{
		"a count before the command":  specOf("index", "keynum", 1, -2, 1, 1),
		"a count far before":          specOf("index", "keynum", 1, -huge, 1, 1),
		"a key before the command":    specOf("index", "keynum", 1, 0, -3, 1),
		"steps beyond every number":   specOf("index", "keynum", 1, 0, 1, huge),
		"a range that steps too far":  specOf("index", "range", 1, -1, huge, 0),
		"a range from a huge index":   specOf("index", "range", huge, huge, 1, 0),
		"a range of a negative index": specOf("index", "range", -3, -1, 1, 0),
		"a range to before the begin": specOf("index", "range", 1, -huge, 1, 0),
		"a huge part of the rest":     specOf("index", "range", 1, -1, 1, huge),
	} {
		e := append(entry("x", "write", 1, 1, 1).([]any), []any{}, []any{spec})
		_, c, err := parse(e)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		table := &Table{commands: map[string]*command{"x": c}}
		if table.Changes(0, [][]byte{[]byte("x"), []byte("2"), []byte("a"), []byte("b")}, &nobody{}) {
			t.Errorf("%s: its keys are known", name)
		}
	}
	if c := legacySpec([3]int{1, -1, huge}); !c.unknown {
		t.Error("an older server's step beyond every number is believed")
	}
}
