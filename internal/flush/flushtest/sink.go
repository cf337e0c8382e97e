package flushtest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"baton/internal/flush"
	"baton/internal/flush/row"
)

// SinkHarness is a database under test. At first the database contains only baton's own tables.
type SinkHarness struct {
	// Open opens a connection. If inside is set, every Apply calls it between the check of the fence and the commit.
	Open func(t testing.TB, inside func()) flush.Sink
	// Rows returns columns of a table, joined by "|" with "-" for NULL. The rows may be in any order.
	Rows func(t testing.TB, table string, columns ...string) []string
	// Dead returns the number of dead letters.
	Dead func(t testing.TB) int
}

// sinkCases are the rules that every flush.Sink must keep. The sink must also be a flush.TableCreator and a flush.StaleFinder.
var sinkCases = []struct {
	name string
	test func(t *testing.T, b *sinkCase)
}{
	{"TakeOverOnlyRaisesTheEpoch", takeOverOnlyRaisesTheEpoch},
	{"EveryJobHasItsOwnFence", everyJobHasItsOwnFence},
	{"OldEpochDoesNotCommit", oldEpochDoesNotCommit},
	{"TakeOverWaitsForTheTransactionInFlight", takeOverWaitsForTheTransactionInFlight},
	{"PositionsWaitForTheTransactionInFlight", positionsWaitForTheTransactionInFlight},
	{"WhatIsRecordedIsReadByWhoHoldsTheFenceOnly", whatIsRecordedIsReadByWhoHoldsTheFenceOnly},
	{"LedgerAppliesABatchOnce", ledgerAppliesABatchOnce},
	{"LedgerKnowsABatchByTheNameOfItsStage", ledgerKnowsABatchByTheNameOfItsStage},
	{"BatchWithoutLedgerMayBeAppliedAgain", batchWithoutLedgerMayBeAppliedAgain},
	{"MoreDeadLettersThanAllowedRollTheBatchBack", moreDeadLettersThanAllowedRollTheBatchBack},
	{"PositionIsMovedTogetherWithTheRows", positionIsMovedTogetherWithTheRows},
	{"BatchThatStartsElsewhereIsRefused", batchThatStartsElsewhereIsRefused},
	{"PositionsOfManyShards", positionsOfManyShards},
	{"MarksAreSetWithTheRows", marksAreSetWithTheRows},
	{"MarksMoveWithABatchOfDeadLettersOnly", marksMoveWithABatchOfDeadLettersOnly},
	{"ApplyInsertsUpdatesAndDeletes", applyInsertsUpdatesAndDeletes},
	{"ApplyAddsAndTreatsNullAsZero", applyAddsAndTreatsNullAsZero},
	{"ApplyFindsRowsByCompositeKey", applyFindsRowsByCompositeKey},
	{"ApplyWithoutAKeyInsertsEveryRow", applyWithoutAKeyInsertsEveryRow},
	{"ApplyOfKeyColumnsOnlyLeavesWhatIsThere", applyOfKeyColumnsOnlyLeavesWhatIsThere},
	{"KeepLeavesRowsThatAreThere", keepLeavesRowsThatAreThere},
	{"ReplaceForgetsWhatIsNotWritten", replaceForgetsWhatIsNotWritten},
	{"AbsentValuesLeaveColumnsAlone", absentValuesLeaveColumnsAlone},
	{"NothingIsThereBeforeItsTurn", nothingIsThereBeforeItsTurn},
	{"ABatchThatGivesWayWritesNothing", aBatchThatGivesWayWritesNothing},
	{"LateRowsMeetWhatTheBatchesBeforeHaveWritten", lateRowsMeetWhatTheBatchesBeforeHaveWritten},
	{"RowsRefusedAheadAreTriedInTheirTurn", rowsRefusedAheadAreTriedInTheirTurn},
	{"TheLedgerKnowsABatchThatIsBegunAhead", theLedgerKnowsABatchThatIsBegunAhead},
	{"APositionIsMovedInItsTurn", aPositionIsMovedInItsTurn},
	{"ABatchThatWaitsIsFencedOff", aBatchThatWaitsIsFencedOff},
	{"ATableIsMadeAsItWasDescribed", aTableIsMadeAsItWasDescribed},
	{"RowsOfOtherPassesAreFoundInKeyOrder", rowsOfOtherPassesAreFoundInKeyOrder},
	{"KeysAreListedInTheirOrder", keysAreListedInTheirOrder},
	{"KeysThatBeginAlikeAreListed", keysThatBeginAlikeAreListed},
	{"ARowOfAnotherGenerationIsNotDeleted", aRowOfAnotherGenerationIsNotDeleted},
}

// Sink runs the suite. The argument fresh returns a database to which nothing has been written.
func Sink(t *testing.T, fresh func(t *testing.T) SinkHarness) {
	for _, c := range sinkCases {
		t.Run(c.name, func(t *testing.T) { c.test(t, &sinkCase{SinkHarness: fresh(t), t: t}) })
	}
}

// sinkCase is one case of the suite on one database.
type sinkCase struct {
	SinkHarness
	t *testing.T
}

// open opens a connection and claims the fence with epoch 1.
func (b *sinkCase) open() flush.Sink {
	b.t.Helper()
	s := b.Open(b.t, nil)
	b.takeOver(s, fenceOf(1))
	return s
}

// table makes a table of these columns, each given as "name" for texts or "name int" for integers. The argument key is the number of
// columns in the key, which come first. A column of the key, or a column whose name ends in "!", is NOT NULL.
func (b *sinkCase) table(s flush.Sink, name string, key int, columns ...string) row.TableSpec {
	b.t.Helper()
	spec := row.TableSpec{Name: name}
	for i, text := range columns {
		word, kind, _ := strings.Cut(strings.TrimSuffix(text, "!"), " ")
		c := row.Column{Name: word, Kind: row.KindText, Nullable: i >= key && !strings.HasSuffix(text, "!")}
		if kind == "int" {
			c.Kind, c.Bits = row.KindInteger, 64
		}
		if spec.Columns = append(spec.Columns, c); i < key {
			spec.Key = append(spec.Key, word)
		}
	}
	if err := s.(flush.TableCreator).CreateTable(b.t.Context(), spec); err != nil {
		b.t.Fatal(err)
	}
	return spec
}

// articles makes a table with the columns "id" and "views", and returns a plan that adds to "views".
func (b *sinkCase) articles(s flush.Sink) *row.Plan {
	b.t.Helper()
	b.table(s, "articles", 1, "id int", "views int")
	p := b.plan(s, "articles", "id")
	p.Columns[1].Op = row.OpAdd
	return p
}

// people makes a table in which the column "name" must not be NULL, and returns a plan that writes its rows.
func (b *sinkCase) people(s flush.Sink) *row.Plan {
	b.t.Helper()
	b.table(s, "people", 1, "id int", "name!", "age int")
	return b.plan(s, "people", "id")
}

// plan returns a plan that writes all columns of a table. The plan finds existing rows by the columns in the argument key.
func (b *sinkCase) plan(s flush.Sink, table string, key ...string) *row.Plan {
	b.t.Helper()
	found, err := s.Table(b.t.Context(), table)
	if err != nil {
		b.t.Fatal(err)
	}
	p := &row.Plan{Table: found, Inputs: []string{"all"}}
	for i, c := range found.Columns {
		if p.Columns = append(p.Columns, row.PlanColumn{Column: c}); slices.Contains(key, c.Name) {
			p.Key = append(p.Key, i)
		}
	}
	return p
}

// rowOf returns a row with these values: an int becomes an integer, a string becomes a text, and nil becomes NULL.
func rowOf(values ...any) row.Row {
	r := row.Row{Record: row.Record{Key: fmt.Sprint(values[0]), Inputs: []row.Raw{{Text: fmt.Sprintf("%v", values), OK: true}}}}
	for _, v := range values {
		switch v := v.(type) {
		case nil:
			r.Values = append(r.Values, row.Value{})
		case int:
			r.Values = append(r.Values, row.Integer(int64(v)))
		case row.Value:
			r.Values = append(r.Values, v)
		default:
			r.Values = append(r.Values, row.String(row.KindText, fmt.Sprint(v)))
		}
	}
	return r
}

// goneOf returns a row to be deleted. The argument columns is the number of the row's columns. The first columns are the key.
func goneOf(columns int, key ...any) row.Row {
	r := rowOf(key...)
	r.Values = append(r.Values, make([]row.Value, columns-len(key))...)
	r.Delete = true
	return r
}

func batchOf(id string, part int, rows ...row.Row) flush.Batch {
	return flush.Batch{ID: id, Shard: "s", Part: part, Rows: rows}
}

// movingOf returns a batch that moves a shard from one position to the next.
func movingOf(from, to string, rows ...row.Row) flush.Batch {
	b := batchOf("b", -1, rows...)
	b.Move = &flush.Move{From: from, To: to}
	return b
}

func fenceOf(epoch int64) flush.Fence {
	return flush.Fence{Job: "j", Epoch: epoch, Owner: fmt.Sprint("owner-", epoch), NodeID: "n"}
}

func (b *sinkCase) takeOver(s flush.Sink, f flush.Fence) {
	b.t.Helper()
	if err := s.TakeOver(b.t.Context(), f); err != nil {
		b.t.Fatalf("take over with %+v: %v", f, err)
	}
}

func (b *sinkCase) apply(s flush.Sink, f flush.Fence, p *row.Plan, batch flush.Batch) flush.Outcome {
	b.t.Helper()
	out, err := s.Apply(b.t.Context(), f, p, batch)
	if err != nil {
		b.t.Fatalf("apply batch %s: %v", batch.ID, err)
	}
	return out
}

func (b *sinkCase) fenced(err error, epoch int64) {
	b.t.Helper()
	var fenced *flush.FencedError
	if !errors.As(err, &fenced) || fenced.Epoch != epoch || !errors.Is(err, flush.ErrFenced) || errors.Is(err, flush.ErrTransient) {
		b.t.Errorf("got error %v, want fenced off by epoch %d", err, epoch)
	}
}

// has checks the content of a table. The argument columns has names of columns, such as "a b". The rows are compared as sorted texts.
func (b *sinkCase) has(table, columns string, want ...string) {
	b.t.Helper()
	got := b.Rows(b.t, table, strings.Fields(columns)...)
	if slices.Sort(got); !slices.Equal(got, want) {
		b.t.Errorf("%s of %s are %q, want %q", columns, table, got, want)
	}
}

// recorded takes the results of Positions or Marks, and returns a function that compares them with the wanted texts.
func (b *sinkCase) recorded(got []string, err error) func(want ...string) {
	return func(want ...string) {
		b.t.Helper()
		if err != nil || !slices.Equal(got, want) {
			b.t.Errorf("recorded are %q, %v; want %q", got, err, want)
		}
	}
}

// whileInside makes a write stop in Apply, between its check of the fence and its commit. During this stop it starts another call, and
// checks that this call waits until the write has ended.
func (b *sinkCase) whileInside(open func(inside func()) (apply func() error), begin func() (waiting func())) {
	b.t.Helper()
	reached, gate := make(chan struct{}), make(chan struct{})
	apply := open(func() { close(reached); <-gate })
	applied := make(chan error, 1)
	go func() { applied <- apply() }()
	select {
	case <-reached:
	case err := <-applied:
		b.t.Fatalf("applied, and nothing was inside: %v", err)
	}
	waiting := begin()
	done := make(chan struct{})
	go func() { defer close(done); waiting() }()
	select {
	case <-done:
		b.t.Error("answered while a transaction could still commit")
	case <-time.After(300 * time.Millisecond):
	}
	close(gate)
	if err := <-applied; err != nil {
		b.t.Error(err)
	}
	<-done
}
