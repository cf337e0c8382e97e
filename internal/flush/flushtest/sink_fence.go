package flushtest

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"baton/internal/flush"
	"baton/internal/flush/row"
)

func takeOverOnlyRaisesTheEpoch(t *testing.T, b *sinkCase) {
	s := b.Open(t, nil)
	b.takeOver(s, fenceOf(5))
	b.takeOver(s, fenceOf(5)) // as if the reply was lost
	other := fenceOf(5)
	other.Owner = "somebody else"
	b.fenced(s.TakeOver(t.Context(), other), 5)
	b.fenced(s.TakeOver(t.Context(), fenceOf(4)), 5)
	b.takeOver(s, fenceOf(9))
	b.fenced(s.TakeOver(t.Context(), fenceOf(5)), 9)
}

func everyJobHasItsOwnFence(t *testing.T, b *sinkCase) {
	s := b.Open(t, nil)
	b.takeOver(s, fenceOf(9))
	other := fenceOf(2)
	other.Job = "J" // names of jobs are case-sensitive
	b.takeOver(s, other)
	for _, f := range []flush.Fence{fenceOf(9), other} {
		if _, err := s.Positions(t.Context(), f, nil); err != nil {
			t.Errorf("%+v: %v", f, err)
		}
	}
}

func oldEpochDoesNotCommit(t *testing.T, b *sinkCase) {
	s := b.open()
	p := b.articles(s)
	b.takeOver(s, fenceOf(2))
	impostor, stranger := fenceOf(2), fenceOf(2)
	impostor.Owner, stranger.Job = "impostor", "never taken over"
	marked, dead := batchOf("a", 0, rowOf(1, 5)), batchOf("a", 0)
	marked.Marks = []flush.Mark{{Name: "m", Value: "1"}}
	dead.Dead = []row.DeadLetter{{Record: `{"key":"3"}`, Error: "not a number"}}
	for f, epoch := range map[flush.Fence]int64{fenceOf(1): 2, impostor: 2, stranger: 0} {
		for _, batch := range []flush.Batch{marked, dead, batchOf("a", -1), movingOf("", "1", rowOf(1, 5))} {
			_, err := s.Apply(t.Context(), f, p, batch)
			b.fenced(err, epoch)
		}
	}
	b.has("articles", "id")
	if n := b.Dead(t); n != 0 {
		t.Errorf("%d dead letters", n)
	}
	b.recorded(s.Marks(t.Context(), fenceOf(2), []string{"m"}))("")
	b.recorded(s.Positions(t.Context(), fenceOf(2), []string{"s"}))("")
	if out := b.apply(s, fenceOf(2), p, marked); !out.Applied {
		t.Error("the ledger has an entry of somebody who was fenced off")
	}
	b.has("articles", "id views", "1|5")
}

// A transaction that has checked the fence still commits, and TakeOver waits for this commit. After TakeOver has returned, no transaction
// of an older epoch commits any more.
func takeOverWaitsForTheTransactionInFlight(t *testing.T, b *sinkCase) {
	p := b.articles(b.open())
	b.whileInside(func(inside func()) func() error {
		old := b.Open(t, inside)
		return func() error {
			_, err := old.Apply(t.Context(), fenceOf(1), p, batchOf("a", 0, rowOf(1, 5)))
			return err
		}
	}, func() func() {
		successor := b.Open(t, nil)
		return func() {
			if err := successor.TakeOver(t.Context(), fenceOf(2)); err != nil {
				t.Error(err)
			}
		}
	})
	b.has("articles", "id views", "1|5")
}

// Positions waits for every transaction that could still commit, so that its answer includes the positions of those transactions.
func positionsWaitForTheTransactionInFlight(t *testing.T, b *sinkCase) {
	p := b.articles(b.open())
	b.whileInside(func(inside func()) func() error {
		writing := b.Open(t, inside)
		return func() error {
			_, err := writing.Apply(t.Context(), fenceOf(1), p, movingOf("", "1", rowOf(1, 5)))
			return err
		}
	}, func() func() {
		reading := b.Open(t, nil)
		return func() { b.recorded(reading.Positions(t.Context(), fenceOf(1), []string{"s"}))("1") }
	})
}

func whatIsRecordedIsReadByWhoHoldsTheFenceOnly(t *testing.T, b *sinkCase) {
	s := b.open()
	b.takeOver(s, fenceOf(2))
	_, err := s.Positions(t.Context(), fenceOf(1), []string{"s"})
	b.fenced(err, 2)
	_, err = s.Marks(t.Context(), fenceOf(1), []string{"m"})
	b.fenced(err, 2)
	b.recorded(s.Positions(t.Context(), fenceOf(2), nil))()
	b.recorded(s.Marks(t.Context(), fenceOf(2), nil))()
}

func ledgerAppliesABatchOnce(t *testing.T, b *sinkCase) {
	s := b.open()
	p := b.articles(s)
	for _, want := range []bool{true, false, false} {
		if out := b.apply(s, fenceOf(1), p, batchOf("a", 0, rowOf(1, 5))); out.Applied != want {
			t.Errorf("applied = %v, want %v", out.Applied, want)
		}
	}
	b.takeOver(s, fenceOf(2))
	if out := b.apply(b.Open(t, nil), fenceOf(2), p, batchOf("a", 0, rowOf(1, 5))); out.Applied {
		t.Error("applied again by a successor")
	}
	b.apply(s, fenceOf(2), p, batchOf("a", 1, rowOf(1, 5))) // another part
	b.apply(s, fenceOf(2), p, batchOf("b", 0, rowOf(1, 5))) // another batch
	b.has("articles", "views", "15")
}

// A renamed job finishes the stage that was made under the job's old name.
func ledgerKnowsABatchByTheNameOfItsStage(t *testing.T, b *sinkCase) {
	s := b.open()
	p := b.articles(s)
	b.apply(s, fenceOf(1), p, batchOf("a", 0, rowOf(1, 5)))
	renamed := fenceOf(2)
	renamed.Job = "renamed"
	b.takeOver(s, renamed)
	for try, applied := range []bool{false, true, false} {
		batch := batchOf("a", try%2, rowOf(1, 7))
		batch.Job = "j"
		if out := b.apply(s, renamed, p, batch); out.Applied != applied {
			t.Errorf("try %d: %+v", try, out)
		}
	}
	b.has("articles", "views", "12")
}

func batchWithoutLedgerMayBeAppliedAgain(t *testing.T, b *sinkCase) {
	s := b.open()
	p := b.people(s)
	batch := batchOf("a", -1, rowOf(1, "Ann", 1), rowOf(2, nil, 2))
	batch.Dead = []row.DeadLetter{{Record: `{"key":"3"}`, Error: "not a number"}, {Record: `{"key":"3"}`, Error: "not a number"}}
	for range 2 {
		if out := b.apply(s, fenceOf(1), p, batch); !out.Applied || out.Rows != 1 || len(out.Dead) != 3 || out.Dead[0] != batch.Dead[0] {
			t.Errorf("outcome %+v", out)
		}
	}
	b.has("people", "id name", "1|Ann")
	if n := b.Dead(t); n != 3 {
		t.Errorf("%d dead letters, want one of each record that does not fit", n)
	}
}

func moreDeadLettersThanAllowedRollTheBatchBack(t *testing.T, b *sinkCase) {
	s := b.open()
	p := b.people(s)
	batch := batchOf("a", 0, rowOf(1, "Ann", 1), rowOf(2, nil, 1), rowOf(3, nil, 2), rowOf(4, "Dan", 4))
	batch.Dead = []row.DeadLetter{{Record: `{"key":"5"}`, Error: "no number"}}
	batch.Marks = []flush.Mark{{Name: "m", Value: "1"}}
	batch.DeadLimit = 2
	_, err := s.Apply(t.Context(), fenceOf(1), p, batch)
	var many *flush.TooManyDeadError
	if !errors.As(err, &many) || !errors.Is(err, flush.ErrTooManyDead) || errors.Is(err, flush.ErrTransient) {
		t.Fatalf("error %v", err)
	}
	if many.Dead != 3 || many.Limit != 2 || many.First != batch.Dead[0] {
		t.Errorf("%+v", many)
	}
	b.has("people", "id")
	b.recorded(s.Marks(t.Context(), fenceOf(1), []string{"m"}))("")
	if n := b.Dead(t); n != 0 {
		t.Errorf("%d dead letters", n)
	}
	batch.DeadLimit = 3
	if out := b.apply(s, fenceOf(1), p, batch); !out.Applied || out.Rows != 2 || len(out.Dead) != 3 {
		t.Errorf("outcome %+v", out)
	}
	b.has("people", "id", "1", "4")
}

func positionIsMovedTogetherWithTheRows(t *testing.T, b *sinkCase) {
	s := b.open()
	p := b.articles(s)
	b.recorded(s.Positions(t.Context(), fenceOf(1), []string{"s"}))("")
	for _, batch := range []flush.Batch{movingOf("", "1", rowOf(1, 5)), movingOf("1", "2", rowOf(1, 5)), movingOf("2", "10")} {
		for _, want := range []bool{true, false} {
			if out := b.apply(s, fenceOf(1), p, batch); out.Applied != want {
				t.Errorf("%v: applied = %v", *batch.Move, out.Applied)
			}
		}
		b.recorded(s.Positions(t.Context(), fenceOf(1), []string{"s"}))(batch.Move.To)
	}
	b.has("articles", "views", "10")
}

func batchThatStartsElsewhereIsRefused(t *testing.T, b *sinkCase) {
	s := b.open()
	p := b.articles(s)
	refuse := func(batch flush.Batch) {
		t.Helper()
		_, err := s.Apply(t.Context(), fenceOf(1), p, batch)
		if !errors.Is(err, flush.ErrMoved) || errors.Is(err, flush.ErrTransient) || !strings.Contains(fmt.Sprint(err), `"s"`) {
			t.Errorf("%v: %v", *batch.Move, err)
		}
	}
	refuse(movingOf("1", "2", rowOf(1, 5)))
	b.apply(s, fenceOf(1), p, movingOf("", "3", rowOf(1, 5)))
	refuse(movingOf("", "2", rowOf(1, 5)))
	refuse(movingOf("2", "4", rowOf(1, 5)))
	b.recorded(s.Positions(t.Context(), fenceOf(1), []string{"s"}))("3")
	b.has("articles", "views", "5")
}

// Shards do not affect each other, whatever their names and their number are.
func positionsOfManyShards(t *testing.T, b *sinkCase) {
	s := b.open()
	p := b.articles(s)
	known := []string{"s", "S", `{a}:"\'`, "straße", "\xff", strings.Repeat("x", 500), strings.Repeat("x", 500) + "y"}
	for n, shard := range known {
		batch := movingOf("", fmt.Sprint("at ", n))
		batch.Shard = shard
		b.apply(s, fenceOf(1), p, batch)
	}
	var shards, want []string
	for n := range 1200 {
		shards, want = append(shards, fmt.Sprint("unknown ", n)), append(want, "")
		if n%200 == 0 {
			shards, want = append(shards, known[n/200]), append(want, fmt.Sprint("at ", n/200))
		}
	}
	shards, want = append(shards, known[6]), append(want, "at 6")
	b.recorded(s.Positions(t.Context(), fenceOf(1), shards))(want...)
}

func marksAreSetWithTheRows(t *testing.T, b *sinkCase) {
	s := b.open()
	p := b.articles(s)
	marks := func(want ...string) {
		t.Helper()
		b.recorded(s.Marks(t.Context(), fenceOf(1), []string{"a", "z", "m"}))(want...)
	}
	batch := batchOf("a", 0, rowOf(1, 5))
	batch.Marks = []flush.Mark{{Name: "z", Value: "7"}, {Name: "a", Value: "5"}}
	b.apply(s, fenceOf(1), p, batch)
	marks("5", "7", "")
	batch.ID, batch.Marks = "b", []flush.Mark{{Name: "m", Value: "1"}, {Name: "a", Value: "3"}} // a smaller value than before is also set
	b.apply(s, fenceOf(1), p, batch)
	marks("3", "7", "1")
	if batch.Marks[1].Value = "9"; b.apply(s, fenceOf(1), p, batch).Applied {
		t.Error("applied twice")
	}
	marks("3", "7", "1")
}

// The dead letter contains the counter's difference, and a replay of the letter adds the difference. So the mark must move, because
// otherwise the next pass would find the same difference again.
func marksMoveWithABatchOfDeadLettersOnly(t *testing.T, b *sinkCase) {
	s := b.open()
	p := b.people(s)
	batch := batchOf("a", 0, rowOf(1, nil, 5))
	batch.Marks = []flush.Mark{{Name: "1", Value: "7"}}
	if out := b.apply(s, fenceOf(1), p, batch); out.Rows != 0 || len(out.Dead) != 1 {
		t.Errorf("%d rows and %d dead letters, want one dead letter", out.Rows, len(out.Dead))
	}
	b.recorded(s.Marks(t.Context(), fenceOf(1), []string{"1"}))("7")
}
