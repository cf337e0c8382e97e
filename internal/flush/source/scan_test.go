package source

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"baton/internal/flush"
	"baton/internal/flush/mapping"
	"baton/internal/redisconn/redistest"
)

func TestEveryValueIsRead(t *testing.T) {
	g := newRig(t)
	g.Do("HSET", "h:1", "name", "one", "n", 1)
	g.Do("HSET", "h:2", "name", "")
	g.Do("HSET", "h:3", "other", "x")
	g.Do("SET", "s:1", "text")
	g.Do("SET", "s:2", "")
	g.Do("SET", "s:3", "a\x00\xff")
	g.Do("SET", "j:1", `{"name":"one","n":1.50,"id":"not mine"}`)
	g.Do("SET", "j:2", `{"n":null,"name":{"a":[1]}}`)
	g.Do("SET", "j:3", "no json")
	g.Do("SADD", "t:1", "a", "b")
	g.Do("SADD", "t:2", 1, 2, 3)
	g.Do("ZADD", "z:1", 1, "a", "3.5", "b", "1e20", "c", "-inf", "d")
	g.Do("HSET", "stock:paris:7", "n", 3)
	g.Do("HSET", "stock:rome:7:b", "n", 4)
	for _, prefix := range []string{"h", "s", "j", "t", "z", "stock"} { // these keys have no type that a scan reads
		g.Do("RPUSH", prefix+":list:x", "x")
		g.Do("XADD", prefix+":stream:x", "*", "a", "b")
	}
	for _, c := range []struct {
		key, value, inputs string
		want               []string
	}{
		{"h:<id>", "hash", "id name n", []string{"1|one|1", "2||-", "3|-|-"}},
		{"h:<id>", "hash", "id", []string{"1", "2", "3"}},
		{"h:<name>", "hash", "n name $key", []string{"-|2|h:2", "-|3|h:3", "1|1|h:1"}},
		{"s:<id>", "string", "id $value", []string{"1|text", "2|", "3|a\x00\xff"}},
		{"s:<id>", "string", "$key", []string{"s:1", "s:2", "s:3"}},
		{"j:<id>", "json", "id name n", []string{"1|one|1.50", `2|{"a":[1]}|-`, "3|-|-!"}},
		{"j:<id>", "json", "id $value n", []string{`1|{"name":"one","n":1.50,"id":"not mine"}|1.50`, `2|{"n":null,"name":{"a":[1]}}|-`,
			"3|no json|-!"}},
		{"t:<id>", "set", "id $member", []string{"1|a", "1|b", "2|1", "2|2", "2|3"}},
		{"t:<id>", "set", "id", []string{"1", "2"}},
		{"z:<id>", "zset", "$score $member", []string{"-inf|d", "1e+20|c", "1|a", "3.5|b"}},
		{"stock:<shop>:<item>", "hash", "item n shop", []string{"7:b|4|rome", "7|3|paris"}},
		{"<all>", "set", "all $member", []string{"t:1|a", "t:1|b", "t:2|1", "t:2|2", "t:2|3"}},
	} {
		src := scanOn(t, g.store, ScanOptions{Key: c.key, Value: c.value, Inputs: strings.Fields(c.inputs)})
		var got []string
		for _, p := range readAll(t, src, stageNow(t, src, "a")) {
			for _, r := range p.Records {
				text := rowText(r)
				if r.Err != nil {
					text += "!"
				}
				got = append(got, text)
			}
		}
		slices.Sort(got)
		slices.Sort(c.want)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s %s, %s (-want +got):\n%s", c.value, c.key, c.inputs, diff)
		}
	}
}

func TestScanPagesComeInKeyOrderAndOfOneLane(t *testing.T) {
	g := newRig(t)
	for i := range 3000 {
		g.Send("SET", fmt.Sprintf("s:%d", i*7919%3000), i)
	}
	g.Do("")
	for _, lanes := range []int{1, 3} {
		src := scanOn(t, g.store, ScanOptions{Key: "s:<id>", Value: "string", Inputs: []string{"id", "$value"}, PageRows: 100,
			Lanes: lanes})
		lane, last, breaks := map[string]int{}, make([]string, lanes), make([]int, lanes)
		pages := readAll(t, src, stageNow(t, src, "a"))
		for _, p := range pages {
			if p.Part != -1 || len(p.Records) > 100 {
				t.Errorf("page of part %d with %d records", p.Part, len(p.Records))
			}
			for _, r := range p.Records {
				id := r.Inputs[0].Text
				if lane[id] = p.Lane; last[p.Lane] != "" && byNumber(last[p.Lane], id) >= 0 {
					breaks[p.Lane]++
				}
				last[p.Lane] = id
			}
		}
		if len(lane) != 3000 || len(pages) > 30+4*lanes { // the keys are collected in four lists at most
			t.Errorf("%d lanes: %d keys in %d pages", lanes, len(lane), len(pages))
		}
		if slices.Max(breaks) > 3 {
			t.Errorf("%d lanes: the order begins anew %d times", lanes, breaks)
		}
		for _, p := range readAll(t, src, stageNow(t, src, "b")) {
			for _, r := range p.Records {
				if lane[r.Inputs[0].Text] != p.Lane {
					t.Fatalf("key %s has another lane in another pass", r.Key)
				}
			}
		}
	}
}

func TestMoreKeysThanMemoryAreReadInRounds(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	want := map[string]string{}
	for i := range 6000 {
		g.Send("SET", fmt.Sprintf("s:%d", i), strings.Repeat("x", i%50))
		want[fmt.Sprint(i)] = strings.Repeat("x", i%50)
	}
	g.Do("")
	scans := 0
	j := &scanJob{store: g.store, table: newScanTable("id", "v"), columns: map[string]mapping.ColumnSpec{"id": {}, "v": {From: "$value"}},
		options: ScanOptions{Key: "s:<id>", Value: "string", MemoryBudget: 32 << 10},
		observe: func(step string) error {
			if step == redistest.Before("SCAN") {
				scans++
			}
			return nil
		}}
	j.must(t)
	same(t, "rows", want, j.table.texts())
	if scans < 3 {
		t.Errorf("%d rounds for 200 KB of keys in a budget of 32 KiB", scans)
	}
}

// A set of any size is read a few members at a time.
func TestBigSetsAreReadInPages(t *testing.T) {
	g := newRig(t)
	want := map[string]string{}
	sizes := []int{1, 2, 100, 129, 1500, 3500} // up to 128 members have a compact encoding
	for i, size := range sizes {
		for n := range size {
			member := fmt.Sprintf("m%d", n)
			if err := g.Conn.Send("ZADD", fmt.Sprintf("z:%d", i), n, member); err != nil {
				t.Fatal(err)
			}
			want[fmt.Sprintf("%d|%s", i, member)] = fmt.Sprint(n)
		}
		g.Do("")
	}
	j := &scanJob{store: g.store, table: newScanTable("id member", "score"), options: ScanOptions{Key: "z:<id>", Value: "zset", Lanes: 2,
		PageRows: 500},
		columns: map[string]mapping.ColumnSpec{"id": {}, "member": {From: "$member"}, "score": {From: "$score"}}}
	j.must(t)
	same(t, "rows", want, j.table.texts())
	g.Do("ZREM", "z:5", "m0", "m3000")
	g.Do("DEL", "z:3")
	delete(want, "5|m0")
	delete(want, "5|m3000")
	for n := range sizes[3] {
		delete(want, fmt.Sprintf("3|m%d", n))
	}
	j.must(t)
	same(t, "rows after members are gone", want, j.table.texts())
}

func TestScanOptionsAreChecked(t *testing.T) {
	g := newRig(t)
	for _, c := range []struct{ key, value, inputs, want string }{
		{"session", "hash", "", "must name the parts"},
		{"s:<a><b>", "hash", "", "separator"},
		{"s:<a>", "list", "", "use hash, string, json, set or zset"},
		{"s:<a>", "string", "name", `has no input "name"`},
		{"s:<a>", "hash", "$value", `has no input "$value"`},
		{"s:<a>", "set", "$score", `has no input "$score"`},
		{"s:<a>", "hash", "$field", `has no input "$field"`},
	} {
		_, err := NewScan(g.store, ScanOptions{Job: "j", Key: c.key, Value: c.value, Inputs: strings.Fields(c.inputs)})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if _, err := NewScan(g.store, ScanOptions{Key: "s:<a>", Value: "hash"}); err == nil {
		t.Error("a scan without a job was accepted")
	}
}

func TestAPassIsOfItsStage(t *testing.T) {
	g := newRig(t)
	g.Do("SET", "s:1", "x")
	src := scanOn(t, g.store, ScanOptions{Key: "s:<id>", Value: "string", Inputs: []string{"id", "$generation"}})
	first := stageNow(t, src, "a")
	if _, missed := src.Pass(first); missed == nil {
		t.Error("a pass that did not begin is complete")
	}
	one := readAll(t, src, first)[0].Records[0]
	generation, missed := src.Pass(first)
	if missed != nil || one.Inputs[1].Text != fmt.Sprint(generation) || generation < 1_700_000_000_000_000 {
		t.Errorf("pass %d, %v; the record says %s", generation, missed, one.Inputs[1].Text)
	}
	second := stageNow(t, src, "b")
	err := src.Read(t.Context(), first, func(flush.Page) error { t.Error("a page"); return nil })
	if !errors.Is(err, flush.ErrStaleStage) {
		t.Errorf("read of an earlier pass: %v", err)
	}
	if _, missed := src.Pass(first); !errors.Is(missed, flush.ErrStaleStage) {
		t.Errorf("an earlier pass: %v", missed)
	}
	if next, missed := src.Pass(second); next <= generation || missed == nil {
		t.Errorf("pass %d after %d, %v", next, generation, missed)
	}
	if _, counted := flush.Source(src).(flush.Counted); counted {
		t.Error("a scan is counted, although nobody knows what has changed")
	}
}

func TestPeekReadsAFewRecords(t *testing.T) {
	g := newRig(t)
	for i := range 5000 {
		g.Send("SET", fmt.Sprintf("x:%d", i), i)
	}
	g.Do("")
	src := scanOn(t, g.store, ScanOptions{Key: "x:<id>", Value: "string", Inputs: []string{"id", "$value"}, Lanes: 2})
	for _, n := range []int{1, 10, 5000, 10_000} {
		records, err := src.Peek(t.Context(), n)
		if err != nil || len(records) != min(n, 5000) {
			t.Errorf("%d records of %d, %v", len(records), n, err)
		}
	}
	none := scanOn(t, g.store, ScanOptions{Key: "none:<id>", Value: "string", Inputs: []string{"id", "$value"}})
	if records, err := none.Peek(t.Context(), 10); len(records) != 0 || err != nil {
		t.Errorf("%d records of none, %v", len(records), err)
	}
}

// If all keys of a job have another type, the job would write nothing, and report nothing.
func TestPeekSaysThatTheKeysHoldAnotherType(t *testing.T) {
	g := newRig(t)
	g.Do("SET", "x:1", `{"a": 1}`)
	g.Do("LPUSH", "l:1", "a")
	for want, o := range map[string]ScanOptions{
		"x:1\" is a string: the job skips such keys; set `value` to their type": {Key: "x:<id>"},
		"no key of \"x:<id>\" is a set, but for example":                        {Key: "x:<id>", Value: "set"},
		"l:1\" is a list": {Key: "l:<id>"},
	} {
		o.Inputs = []string{"id"}
		records, err := scanOn(t, g.store, o).Peek(t.Context(), 10)
		if len(records) != 0 || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%d records, %v; want %q", len(records), err, want)
		}
	}
	g.Do("HSET", "x:2", "a", 1)
	records, err := scanOn(t, g.store, ScanOptions{Key: "x:<id>", Inputs: []string{"id"}}).Peek(t.Context(), 10)
	if len(records) != 1 || err != nil {
		t.Errorf("one key of the right type: %d records, %v", len(records), err)
	}
}
