package idlist

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Every id is in one lane, and in the same one in every list. Each lane is sorted. Two lanes must not write the same row at the same time,
// and each lane writes in key order.
func TestIDsAreDealtOutToLanes(t *testing.T) {
	lanes := map[string]int{}
	for range 2 {
		pile := &List{}
		for i := range 10_000 {
			pile.Add([]byte(fmt.Sprint((i * 7919) % 10_000)))
		}
		pile.Sort()
		count := make([]int, 3)
		seen := map[string]bool{}
		last := make([]int, 3)
		for lane, page := range pile.Pages(100, 3) {
			for _, id := range page {
				if seen[id] {
					t.Fatalf("id %s came twice", id)
				}
				seen[id] = true
				if before, known := lanes[id]; known && before != lane {
					t.Fatalf("id %s was in lane %d, and now in %d", id, before, lane)
				}
				lanes[id] = lane
				var n int
				if _, err := fmt.Sscan(id, &n); err != nil || n < last[lane] {
					t.Fatalf("lane %d: %s after %d", lane, id, last[lane])
				}
				last[lane] = n
			}
			count[lane] += len(page)
		}
		if len(seen) != 10_000 || slices.Min(count) < 3000 {
			t.Errorf("%d ids in lanes of %v", len(seen), count)
		}
	}
}

func TestIDsSortLikeADatabaseKey(t *testing.T) {
	for _, want := range [][]string{
		{"-100", "-20", "-3", "0", "1", "9", "10", "123456789012345678901", "9234567890123456789012"},
		{"7", "07", "007", "8"}, // the same number, and three ids
		{"-9223372036854775809", "-9223372036854775808", "9223372036854775807", "9223372036854775808"},
		{"some-body1", "some-body10", "some-body2"},
		{"", "10", "9"}, // not all are integers, so they are sorted by bytes
		{"10", "9", "a"},
		{"-", "1"},
		{"1", "é", "日"},
	} {
		for range 10 {
			ids := slices.Concat(want, want[:1]) // a duplicate is dropped
			rand.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
			var pile List
			for _, id := range ids {
				pile.Add([]byte(id))
			}
			pile.Sort()
			var got []string
			for _, page := range pile.Pages(2, 1) {
				got = append(got, page...)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatal(diff)
			}
		}
	}
}

// Many ids are sorted with another algorithm than few.
func TestManyIDsSortAsFewDo(t *testing.T) {
	for name, id := range map[string]func(i int) string{
		"integers":       strconv.Itoa,
		"signed":         func(i int) string { return strconv.Itoa((i - 5000) * 7_654_321_987) },
		"large":          func(i int) string { return fmt.Sprintf("12345678901234567890%d", i) }, // all have the same rank
		"texts":          func(i int) string { return fmt.Sprintf("u%d", i) },
		"texts, one end": func(i int) string { return fmt.Sprintf("customer-%d", i) },
		"with zeros":     func(i int) string { return fmt.Sprintf("%0*d", 1+i%7, i) },
	} {
		var want []string
		for i := range 10_000 {
			want = append(want, id(i))
		}
		_, integers := rankOfInteger([]byte(want[0]))
		slices.SortFunc(want, func(a, b string) int {
			if integers {
				return compareIntegers(a, b)
			}
			return strings.Compare(a, b)
		})
		shuffled := slices.Concat(want, want[:3000])
		rand.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		var text []byte
		var places [][2]int
		for _, s := range shuffled {
			text = append(text, '|')
			places = append(places, [2]int{len(text), len(s)})
			text = append(text, s...)
		}
		ids := (&List{}).Over(text)
		for _, p := range places {
			ids.AddAt(p[0], p[1])
		}
		ids.Sort()
		var got []string
		for at, size := range ids.Each() {
			got = append(got, string(text[at:at+size]))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// Long ids are copied only into the list, whose memory is allocated once.
func TestLongIDsAreInMemoryOnce(t *testing.T) {
	id := bytes.Repeat([]byte("x"), 1<<20)
	allocated := testing.Benchmark(func(b *testing.B) {
		for b.Loop() {
			pile, n := &List{}, 0
			for i := 0; !pile.Full(1 << 30); i++ {
				id[0] = byte('a' + i)
				pile.Add(id)
			}
			pile.Sort()
			for _, ids := range pile.Pages(3, 2) {
				for _, got := range ids {
					if len(got) != 1<<20 || strings.Contains(got[1:], "a") {
						b.Errorf("id of %d bytes", len(got))
					}
					n++
				}
			}
			if n != 4 || !pile.long() {
				b.Errorf("%d ids, long: %v", n, pile.long())
			}
		}
	}).AllocedBytesPerOp()
	if allocated > 5<<20 {
		t.Errorf("%d bytes for 4 MiB of ids", allocated)
	}
	short := &List{}
	for i := range 1000 {
		short.Add(strconv.AppendInt(nil, int64(i), 10))
	}
	if short.long() {
		t.Error("ids of three bytes are long")
	}
}

func BenchmarkSort(b *testing.B) {
	for _, n := range []int{5000, 100_000} {
		var full List
		for _, i := range rand.Perm(n) {
			full.Add(strconv.AppendInt(nil, int64(1_000_000+i), 10))
		}
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			for b.Loop() {
				l := List{text: full.text, places: slices.Clone(full.places)}
				l.Sort()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/id")
		})
	}
}
