package paging

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"baton/internal/flush/row"
)

// All records come, each once and in order. A page is longer than the desired size only if its one record is longer. A page ends for no
// other reason.
func TestPagesAreFilledByBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.IntRange(1, 2000).Draw(t, "aim")
		var ids []string
		var sizes []int
		for i := range rapid.IntRange(1, 200).Draw(t, "ids") {
			ids = append(ids, fmt.Sprint(i))
			sizes = append(sizes, rapid.SampledFrom([]int{1, 10, 100, 1000, 5000}).Draw(t, "size"))
		}
		asked := 0
		read := func(some []string) ([]row.Record, error) {
			if some[0] != ids[asked] {
				t.Fatalf("asked for %q after %d", some[0], asked)
			}
			some = some[:1+len(some)/2] // some calls read fewer
			var out []row.Record
			for _, id := range some {
				out = append(out, row.Record{Key: id, Inputs: []row.Raw{{Text: strings.Repeat("x", sizes[asked])}}})
				asked++
			}
			return out, nil
		}
		f := NewFiller(most)
		for left := ids; len(left) > 0; {
			got, err := f.Fill(left, read)
			if err != nil || len(got) == 0 {
				t.Fatalf("%d records, %v", len(got), err)
			}
			bytes := 0
			for i := range got {
				if got[i].Key != left[i] {
					t.Fatalf("record %q, want %q", got[i].Key, left[i])
				}
				bytes += got[i].Size()
			}
			if bytes > most && len(got) > 1 {
				t.Fatalf("a page of %d records has %d bytes, the aim is %d", len(got), bytes, most)
			}
			if left = left[len(got):]; len(left) > 0 && bytes+len(left[0])+sizes[len(ids)-len(left)] <= most {
				t.Fatalf("a page of %d bytes has room for the next record", bytes)
			}
		}
	})
}

func TestAnErrorOfTheReadingIsThatOfThePage(t *testing.T) {
	f, broken := NewFiller(10), errors.New("broken")
	if _, err := f.Fill([]string{"1"}, func([]string) ([]row.Record, error) { return nil, broken }); !errors.Is(err, broken) {
		t.Error(err)
	}
}

// After an item that is too long for a part, the part ends. The next item need not be read for that.
func TestAnItemThatIsTooLongIsAPartAtOnce(t *testing.T) {
	for _, c := range []struct {
		has   string
		n     int
		whole bool
	}{{"12345678901", 1, true}, {"1234567890", 1, false}, {"1234567890|", 2, false}, {"12345678|901", 1, true}} {
		var read []row.Record
		for item := range strings.SplitSeq(c.has, "|") {
			read = append(read, row.Record{Key: item})
		}
		if n, whole := Part(read, 100, 10, 100); n != c.n || whole != c.whole {
			t.Errorf("of %q %d items are a part, whole: %v", c.has, n, whole)
		}
	}
	if n, whole := Part([]row.Record{{Key: "12345678901"}}, 100, 0, 100); n != 1 || whole {
		t.Errorf("without a limit of bytes %d items are a part, whole: %v", n, whole)
	}
}

func TestLanesShareTheBytesOfAJob(t *testing.T) {
	for _, c := range []struct{ ofJob, lanes, want int }{{0, 0, 8 << 20}, {0, 4, 2 << 20}, {1000, 1, 1000}, {3, 8, 1}} {
		if got := Bytes(c.ofJob, c.lanes); got != c.want {
			t.Errorf("%d bytes in %d lanes: pages of %d, want %d", c.ofJob, c.lanes, got, c.want)
		}
	}
}
