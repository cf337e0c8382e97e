package idlist

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"testing"
)

// passed describes a pass over ids of a scan.
type passed struct {
	pages []int // the lengths of the pages
	ids   []string
	at    []int // the number of collected ids when each page was used
	wait  int   // the maximum number of ids that were collected and not used
}

// passOver makes a pass over n ids in random order. A scan returns ten of them at a time.
func passOver(t *testing.T, n, page, budget int, text func(i int) string) (out passed) {
	t.Helper()
	at := 0
	err := Pass{
		Page: page, Lanes: 1, Group: page, Budget: budget, About: int64(n),
		Collect: func(_ context.Context, ids *List, most, budget int) (more bool, err error) {
			for once := true; at < n && (once || !ids.Full(budget) && ids.Len() < most); once = false {
				for range min(10, n-at) {
					ids.Add([]byte(text(at * 7919 % n)))
					at++
				}
			}
			return at < n, nil
		},
		Use: func(_ int, ids []string) error {
			out.wait = max(out.wait, at-len(out.ids))
			out.pages, out.ids, out.at = append(out.pages, len(ids)), append(out.ids, ids...), append(out.at, at)
			return nil
		},
	}.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Every id is used once. The first list is one page. While a list is used, the next one is collected, so that the database does not wait
// for it. Only the last page may be incomplete.
func TestAPassCollectsAListWhileItUsesAnother(t *testing.T) {
	for _, n := range []int{0, 1, 95, 100, 101, 1234, 100_000} {
		got := passOver(t, n, 100, 1<<30, strconv.Itoa)
		if ids := slices.Compact(slices.Sorted(slices.Values(got.ids))); len(ids) != n || len(got.ids) != n {
			t.Errorf("of %d ids %d were used, of them %d different ones", n, len(got.ids), len(ids))
		}
		for i, page := range got.pages {
			if page != 100 && i < len(got.pages)-1 {
				t.Errorf("of %d: page %d of %d has %d ids", n, i, len(got.pages), page)
			}
		}
		if n < 1000 {
			continue
		}
		for i := range got.pages[1:] {
			if now := got.at[i+1] - got.at[i]; now > growth*100+10 || now < growth*100-10 && got.at[i+1] < n {
				t.Errorf("of %d: %d were collected between pages %d and %d", n, now, i, i+1)
			}
		}
	}
}

// Two lists together stay within the budget, apart from one reply. A pass ends even with the smallest budget.
func TestAPassKeepsToItsBudget(t *testing.T) {
	for _, budget := range []int{0, 1, 1000, 100_000} {
		got := passOver(t, 10_000, 100, budget, strconv.Itoa)
		if len(got.ids) != 10_000 || got.wait*Cost > budget+2*10*Cost {
			t.Errorf("budget %d: %d ids used, %d held", budget, len(got.ids), got.wait)
		}
	}
	long := fmt.Sprintf("%2000d", 0)
	got := passOver(t, 10_000, 100, 1<<30, func(i int) string { return strconv.Itoa(i) + long })
	if len(got.ids) != 10_000 || got.wait > longText/2000+10 {
		t.Errorf("long ids: %d used, %d held", len(got.ids), got.wait)
	}
}
