package paging

import (
	"strconv"
	"strings"
	"testing"

	"baton/internal/flush/row"
)

// pagesOf fills pages with the records of ids. Each record has its id twice, and ids with an x are long. left decides which page leaves as
// soon as the next one is filled.
func pagesOf(t *testing.T, ids []string, left func(page int) bool, look func(page int, records []row.Record)) {
	t.Helper()
	f := NewFiller(100)
	var before []row.Record
	var leave func()
	for page := 0; len(ids) > 0; page++ {
		records, err := f.Fill(ids, func(ids []string) ([]row.Record, error) {
			out := f.Records(len(ids), 2)
			for i, id := range ids {
				if out[i].Err != nil || out[i].Gone || out[i].Inputs[0].OK || out[i].Inputs[1].Text != "" {
					t.Fatalf("record %+v is not empty", out[i])
				}
				out[i].Key, out[i].Inputs[1] = id, row.Raw{Text: id, OK: true}
			}
			return out, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if page > 0 {
			look(page-1, before) // nothing was written there since
		}
		if page > 0 && left(page-1) {
			leave()
		}
		before, leave = records, f.Left()
		ids = ids[len(records):]
	}
	look(-1, before)
}

// A page may leave while its memory has records for the next page, which were too long for it.
func TestAPageLeavesTheMemoryOfOthersAlone(t *testing.T) {
	var ids []string
	for i := range 500 {
		ids = append(ids, strconv.Itoa(1000+i)+strings.Repeat("x", i%7*9))
	}
	next := 0
	pagesOf(t, ids, func(page int) bool { return page%3 != 1 }, func(_ int, records []row.Record) {
		for _, r := range records {
			if r.Key != ids[next] || r.Inputs[1].Text != ids[next] {
				t.Fatalf("record %d is %+v, and should be %q", next, r, ids[next])
			}
			next++
		}
	})
	if next != len(ids) {
		t.Errorf("%d records of %d", next, len(ids))
	}
}

// Memory that was left is empty, and another page gets it.
func TestMemoryThatWasLeftIsUsedAgain(t *testing.T) {
	used := testing.AllocsPerRun(100, func() {
		m := NewMemory(100)
		for range 100 {
			raws := m.Raws(3, 300)
			if raws[0].OK || raws[2].Text != "" {
				t.Fatal("a record of another page")
			}
			raws[0], raws[2] = row.Raw{Text: "a", OK: true}, row.Raw{Text: "b", OK: true}
			m.Records = append(m.Records, row.Record{Key: "a", Inputs: raws})
		}
		m.Left()
	})
	if used > 3 { // the pool may be emptied now and then
		t.Errorf("%v allocations a page", used)
	}
	var none *Memory
	none.Left()
}
