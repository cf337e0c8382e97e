package parts

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"baton/internal/flush/source/idlist"
)

func TestWindowKeepsWithinItsBudgetAndHandsOverDistinctFields(t *testing.T) {
	w := NewWindow(2, ByHash(10), 2000)
	want := map[int][]string{}
	fields := make([]string, 300)
	for i := range fields {
		fields[i] = fmt.Sprintf("f%d", i)
	}
	for range 2 { // HSCAN may return a field again
		rand.Shuffle(len(fields), func(i, j int) { fields[i], fields[j] = fields[j], fields[i] })
		for _, f := range fields {
			w.Add([]byte(f), []byte("1"))
			if w.bytes > 2000 && w.Hi-w.lo > 1 {
				t.Fatalf("%d bytes held in %d parts", w.bytes, w.Hi-w.lo)
			}
		}
	}
	for _, f := range fields {
		part := idlist.Part([]byte(f), 10)
		want[part] = append(want[part], f)
	}
	if w.Hi <= w.lo {
		t.Fatal("no part was kept")
	}
	held := 8 * partCost
	for i, text := range w.parts {
		if w.lo+i >= w.Hi && text != nil {
			t.Errorf("part %d is held outside of the window", w.lo+i)
		}
		held += cap(text)
	}
	if held != w.bytes {
		t.Errorf("%d bytes are held, %d accounted for", held, w.bytes)
	}
	for part := w.lo; part < w.Hi; part++ {
		var got []string
		for _, p := range w.Take(part) {
			got = append(got, p.Field)
		}
		slices.Sort(want[part])
		if diff := cmp.Diff(want[part], got); diff != "" {
			t.Errorf("part %d: %s", part, diff)
		}
	}
}

// A stage that is in memory as a whole has the same parts as a stage that is read again with its ends.
func TestPartsByOrderAreTheSameAgain(t *testing.T) {
	for names, integers := range map[string]bool{"%d": true, "f%d": false, "-%d": true, "%020d": true, "\xff%d": false} {
		var fields []string
		for i := range 1000 {
			fields = append(fields, fmt.Sprintf(names, i*i*i))
		}
		rand.Shuffle(len(fields), func(i, j int) { fields[i], fields[j] = fields[j], fields[i] })
		w := NewWhole(7, len(fields))
		for _, f := range append(fields, fields[:10]...) { // HSCAN may return a field again
			w.Add([]byte(f), []byte("1"+f))
		}
		dealt, err := Of(w.Cut(), 7)
		if !dealt.Ordered() || err != nil {
			t.Fatalf("%s: %+v, %v", names, dealt, err)
		}
		again := NewWindow(0, dealt, 1<<20)
		for _, f := range fields {
			again.Add([]byte(f), []byte("1"+f))
		}
		var all []Pair
		for part := range 7 {
			got := w.Take(part)
			if diff := cmp.Diff(got, again.Take(part)); diff != "" {
				t.Errorf("%s: part %d: %s", names, part, diff)
			}
			if len(got) < 1000/7 || len(got) > 1000/7+1 {
				t.Errorf("%s: part %d has %d fields", names, part, len(got))
			}
			all = append(all, got...)
		}
		if len(all) != 1000 {
			t.Errorf("%s: %d fields of 1000", names, len(all))
		}
		for i, p := range all {
			if p.Value != "1"+p.Field || i > 0 && idlist.Compare([]byte(all[i-1].Field), p.Field, integers) >= 0 {
				t.Errorf("%s: %q is behind %q", names, p, all[max(0, i-1)])
			}
		}
	}
}

// A stage is cut by order only if every reading gives the same ends. Otherwise it is cut by hash.
func TestStageIsCutByOrderOnlyIfAllIsThereAndShort(t *testing.T) {
	for _, c := range []struct {
		what                      string
		of, size, fields, longest int
		want                      bool
	}{
		{"all of it", 2, 4, 4, 10, true},
		{"one is gone", 2, 4, 3, 10, false},
		{"all are gone", 2, 4, 0, 10, false},
		{"fewer than parts", 5, 4, 4, 10, false},
		{"long ends", 2, 4, 4, mostEnds + 1, false},
		{"long fields", 2, 12, 12, mostEnds - 10, false},
		{"very long fields", 2, 20, 20, mostEnds - 10, false},
	} {
		w := NewWhole(c.of, c.size)
		for i := range c.fields {
			w.Add([]byte(strings.Repeat("x", c.longest-2)+fmt.Sprintf("%02d", i)), []byte("1"))
		}
		if ends := w.Cut(); (ends != byHash) != c.want {
			t.Errorf("%s: ends %.20q", c.what, ends)
		}
	}
}

func TestWhatTheScriptsWriteOfPartsIsRead(t *testing.T) {
	for text, want := range map[string]int{"40": 0, "": 0, "40 by order": 0, "40 by order of 200000": 200000} {
		if size, ok := Ordered(text); size != want || ok != (want > 0) {
			t.Errorf("%q: %d, %v", text, size, ok)
		}
	}
}

func TestEndsAreReadAsTheyAreWritten(t *testing.T) {
	for _, ends := range []string{"", "n", "b", "hh", "x\x011", "n\x021", "n\x01", "n\x011\x012", "n\xff"} {
		if d, err := Of(ends, 2); err == nil {
			t.Errorf("%q was read as %+v", ends, d)
		}
	}
	if d, err := Of("h", 2); err != nil || d.Ordered() {
		t.Errorf("%+v, %v", d, err)
	}
	if d, err := Of("n\x0210", 2); err != nil || d.part([]byte("9")) != 0 || d.part([]byte("10")) != 1 || d.part([]byte("11")) != 1 {
		t.Errorf("%+v, %v", d, err)
	}
	if d, err := Of("b\x0210", 2); err != nil || d.part([]byte("9")) != 1 || d.part([]byte("1")) != 0 {
		t.Errorf("%+v, %v", d, err)
	}
}
