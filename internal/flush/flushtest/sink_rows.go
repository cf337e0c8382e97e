package flushtest

import (
	"errors"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"baton/internal/flush"
	"baton/internal/flush/row"
)

func applyInsertsUpdatesAndDeletes(t *testing.T, b *sinkCase) {
	s := b.open()
	p := b.people(s)
	out := b.apply(s, fenceOf(1), p, batchOf("a", -1, rowOf(1, "Ann", 30), rowOf(2, "Bob", nil), rowOf(3, "Cid", 9)))
	if !out.Applied || out.Rows != 3 || len(out.Dead) != 0 {
		t.Errorf("outcome %+v", out)
	}
	out = b.apply(s, fenceOf(1), p, batchOf("b", -1, rowOf(1, "Anna", nil), goneOf(3, 2), rowOf(4, "Dan", 4), goneOf(3, 5)))
	if out.Rows != 4 || out.Deleted != 1 {
		t.Errorf("row 2 was there and row 5 was not: outcome %+v", out)
	}
	b.has("people", "id name age", "1|Anna|-", "3|Cid|9", "4|Dan|4")
	// A refused row makes the sink write a batch in pieces, and one piece may be written twice.
	out = b.apply(s, fenceOf(1), p, batchOf("c", -1, goneOf(3, 1), goneOf(3, 3), rowOf(6, nil, 1), rowOf(7, "Eve", 7)))
	if out.Deleted != 2 || len(out.Dead) != 1 {
		t.Errorf("with a refused row: outcome %+v", out)
	}
	b.has("people", "id name age", "4|Dan|4", "7|Eve|7")
}

func applyAddsAndTreatsNullAsZero(_ *testing.T, b *sinkCase) {
	s := b.open()
	p := b.articles(s)
	b.apply(s, fenceOf(1), b.plan(s, "articles", "id"), batchOf("set", 0, rowOf(1, nil), rowOf(2, 10)))
	b.apply(s, fenceOf(1), p, batchOf("a", 0, rowOf(1, 5), rowOf(2, -3), rowOf(3, 7)))
	b.apply(s, fenceOf(1), p, batchOf("a", 1, rowOf(2, nil), rowOf(3, 1)))
	b.has("articles", "id views", "1|5", "2|7", "3|8")
}

func applyFindsRowsByCompositeKey(_ *testing.T, b *sinkCase) {
	s := b.open()
	b.table(s, "c", 2, "a", "b int", "v int")
	p := b.plan(s, "c", "a", "b")
	b.apply(s, fenceOf(1), p, batchOf("1", -1, rowOf("x", 1, 1), rowOf("x", 2, 2), rowOf("y", 1, 3)))
	b.apply(s, fenceOf(1), p, batchOf("2", -1, goneOf(3, "x", 1), rowOf("x", 2, 20), goneOf(3, "y", 2)))
	b.has("c", "a b v", "x|2|20", "y|1|3")
}

func applyWithoutAKeyInsertsEveryRow(_ *testing.T, b *sinkCase) {
	s := b.open()
	b.table(s, "log", 0, "line")
	b.apply(s, fenceOf(1), b.plan(s, "log"), batchOf("1", 0, rowOf("a"), rowOf("a"), rowOf("b")))
	b.has("log", "line", "a", "a", "b")
}

func applyOfKeyColumnsOnlyLeavesWhatIsThere(_ *testing.T, b *sinkCase) {
	s := b.open()
	b.table(s, "seen", 1, "id int")
	p := b.plan(s, "seen", "id")
	b.apply(s, fenceOf(1), p, batchOf("1", -1, rowOf(1), rowOf(2)))
	b.apply(s, fenceOf(1), p, batchOf("2", -1, rowOf(2), rowOf(3)))
	b.has("seen", "id", "1", "2", "3")
}

func keepLeavesRowsThatAreThere(t *testing.T, b *sinkCase) {
	s := b.open()
	p := b.people(s)
	b.apply(s, fenceOf(1), p, batchOf("a", 0, rowOf(1, "Ann", 30)))
	p = b.plan(s, "people", "id")
	p.Keep = true
	for part := range 2 {
		if out := b.apply(s, fenceOf(1), p, batchOf("b", part, rowOf(1, "Other", 9), rowOf(2, "Bob", 1))); out.Rows != 2 ||
			len(out.Dead) > 0 {
			t.Errorf("outcome %+v", out)
		}
	}
	b.has("people", "id name age", "1|Ann|30", "2|Bob|1")
}

func replaceForgetsWhatIsNotWritten(t *testing.T, b *sinkCase) {
	s := b.open()
	p := b.people(s)
	b.apply(s, fenceOf(1), p, batchOf("a", 0, rowOf(1, "Ann", 30), rowOf(2, "Bob", 9), rowOf(3, "Cid", 7)))
	replaced, refused := rowOf(1, "Anna", row.Absent()), rowOf(3, nil, 1)
	replaced.Replace, refused.Replace = true, true
	if out := b.apply(s, fenceOf(1), p, batchOf("b", 0, replaced, refused)); out.Rows != 1 || out.Deleted != 0 || len(out.Dead) != 1 {
		t.Errorf("outcome %+v", out)
	}
	b.has("people", "id name age", "1|Anna|-", "2|Bob|9", "3|Cid|7")
}

func absentValuesLeaveColumnsAlone(t *testing.T, b *sinkCase) {
	s := b.open()
	p := b.people(s)
	b.apply(s, fenceOf(1), p, batchOf("a", 0, rowOf(1, "Ann", 30), rowOf(2, "Bob", 9)))
	absent := row.Absent()
	batch := batchOf("b", -1, rowOf(1, "Anna", absent), rowOf(2, absent, 10), rowOf(3, "Cid", absent), rowOf(4, absent, 1))
	for range 2 {
		if out := b.apply(s, fenceOf(1), p, batch); out.Rows != 3 || len(out.Dead) != 1 {
			t.Errorf("outcome %+v", out)
		}
	}
	b.has("people", "id name age", "1|Anna|30", "2|Bob|10", "3|Cid|-")
}

func aTableIsMadeAsItWasDescribed(t *testing.T, b *sinkCase) {
	s := b.open()
	if _, err := s.Table(t.Context(), "c"); !errors.Is(err, flush.ErrNoTable) || errors.Is(err, flush.ErrTransient) {
		t.Errorf("before it is made: %v", err)
	}
	spec := b.table(s, "c", 2, "a", "b int", "v!", "w int")
	b.table(s, "c", 1, "other") // does nothing, because the table exists
	ddl, described, err := s.(flush.TableCreator).DescribeTable(spec)
	if err != nil || !strings.Contains(ddl, "CREATE TABLE") {
		t.Errorf("described by %q, %v", ddl, err)
	}
	made, err := s.Table(t.Context(), "c")
	for i := range made.Columns { // databases return several spellings of the same type
		made.Columns[i].DBType, described.Columns[i].DBType = "", ""
	}
	made.Identity = "" // only an existing table has an identity
	if err != nil || !reflect.DeepEqual(made, described) {
		t.Errorf("made is %+v, %v\ndescribed was %+v", made, err, described)
	}
}

// passes makes a table with the columns "id" and "gen" and these rows, and returns the plan of a sweep. The column "gen" is the generation.
func (b *sinkCase) passes(s flush.Sink, rows ...row.Row) *row.Plan {
	b.t.Helper()
	b.table(s, "passes", 1, "id int", "gen int")
	p := b.plan(s, "passes", "id")
	b.apply(s, fenceOf(1), p, batchOf("rows", 0, rows...))
	sweep := *p
	sweep.Key = []int{0, 1}
	return &sweep
}

// inPages calls read again and again, each time with the key of the last row of the previous call, until read returns no more rows.
func inPages(t *testing.T, limit int, read func(behind []row.Value) ([][]string, error)) (got []string) {
	t.Helper()
	for behind := []row.Value(nil); ; {
		rows, err := read(behind)
		if err != nil || len(rows) > limit {
			t.Fatalf("%d rows of %d at a time, %v", len(rows), limit, err)
		}
		if len(rows) == 0 {
			return got
		}
		for _, texts := range rows {
			got = append(got, strings.Join(texts, "|"))
		}
		n, err := strconv.ParseInt(rows[len(rows)-1][0], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		behind = []row.Value{row.Integer(n)}
	}
}

func rowsOfOtherPassesAreFoundInKeyOrder(t *testing.T, b *sinkCase) {
	s := b.open()
	finder := s.(flush.StaleFinder)
	p := b.passes(s)
	stale, all, err := finder.CountStale(t.Context(), p, 1)
	rows, readErr := finder.StaleRows(t.Context(), p, 1, nil, 10)
	if stale != 0 || all != 0 || len(rows) != 0 || err != nil || readErr != nil {
		t.Errorf("an empty table has %d stale rows of %d, %q, %v, %v", stale, all, rows, err, readErr)
	}
	// The second value is the generation. No scan has written the rows 1 (NULL) and 2 (0). The current pass has written the rows -7 and
	// 100. A pass with a higher number than the current one is also another pass.
	b.apply(s, fenceOf(1), b.plan(s, "passes", "id"), batchOf("a", 0,
		rowOf(-9, 1), rowOf(-7, 500), rowOf(1, nil), rowOf(2, 0), rowOf(3, 499), rowOf(20, 501), rowOf(100, 500), rowOf(1000, 499)))
	stale, all, err = finder.CountStale(t.Context(), p, 500)
	if err != nil || stale != 4 || all != 6 {
		t.Errorf("counted %d stale rows of %d, %v; want 4 of 6", stale, all, err)
	}
	for _, limit := range []int{1, 2, 100} {
		got := inPages(t, limit, func(behind []row.Value) ([][]string, error) {
			return finder.StaleRows(t.Context(), p, 500, behind, limit)
		})
		if want := []string{"-9|1", "3|499", "20|501", "1000|499"}; !slices.Equal(got, want) {
			t.Errorf("%d at a time: %q, want %q", limit, got, want)
		}
	}
}

func keysAreListedInTheirOrder(t *testing.T, b *sinkCase) {
	s := b.open()
	lister := s.(flush.KeyLister)
	b.passes(s, rowOf(-9, nil), rowOf(3, 5), rowOf(20, 0), rowOf(100, 1))
	p := b.plan(s, "passes", "id")
	keys := row.Plan{Table: p.Table, Inputs: p.Inputs, Columns: p.Columns[:1], Key: []int{0}}
	for _, limit := range []int{1, 3, 4, 100} {
		got := inPages(t, limit, func(behind []row.Value) ([][]string, error) {
			return lister.KeyRows(t.Context(), &keys, flush.KeyRange{Behind: behind, Limit: limit})
		})
		if want := []string{"-9", "3", "20", "100"}; !slices.Equal(got, want) {
			t.Errorf("%d at a time: %q, want %q", limit, got, want)
		}
	}
}

// A sweep finds a row and deletes it later. If a pass has written the row again in between, the sweep must not delete the row.
func aRowOfAnotherGenerationIsNotDeleted(t *testing.T, b *sinkCase) {
	s := b.open()
	p := b.passes(s, rowOf(1, 5), rowOf(2, 5), rowOf(3, 6), rowOf(4, nil))
	b.apply(s, fenceOf(1), p, batchOf("b", -1, goneOf(2, 1, 5), goneOf(2, 3, 5), goneOf(2, 4, 5)))
	b.has("passes", "id", "2", "3", "4")
	b.takeOver(s, fenceOf(2))
	_, err := s.Apply(t.Context(), fenceOf(1), p, batchOf("b", -1, goneOf(2, 2, 5)))
	b.fenced(err, 2)
	b.has("passes", "id", "2", "3", "4")
}
