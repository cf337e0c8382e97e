package flushtest

import (
	"context"
	"errors"
	"testing"
	"time"

	"baton/internal/flush"
	"baton/internal/flush/row"
)

// inTurn returns a batch that must wait for an earlier batch. The sink calls the function turn at the point where it must wait for the
// commit of the earlier batch.
func inTurn(batch flush.Batch, turn func() error, late ...row.Row) flush.Batch {
	batch.Late = late
	batch.AwaitTurn = func(context.Context) error { return turn() }
	return batch
}

// atOnce returns at once. It serves as the function turn of a batch that has no earlier batch to wait for.
func atOnce() error { return nil }

func nothingIsThereBeforeItsTurn(t *testing.T, b *sinkCase) {
	s := b.open()
	p := b.people(s)
	called := 0
	out := b.apply(s, fenceOf(1), p, inTurn(batchOf("a", 1, rowOf(2, "Bob", 2)), func() error {
		called++
		b.has("people", "id")
		return nil
	}, rowOf(1, "Ann", 1)))
	if called != 1 || !out.Applied || out.Rows != 2 {
		t.Errorf("%d calls, outcome %+v", called, out)
	}
	b.has("people", "id name age", "1|Ann|1", "2|Bob|2")
	if out := b.apply(s, fenceOf(1), p, batchOf("a", 1)); out.Applied {
		t.Error("the ledger does not have the batch")
	}
}

// A batch that gives way, because its turn does not come, writes nothing. It may be applied again.
func aBatchThatGivesWayWritesNothing(t *testing.T, b *sinkCase) {
	s := b.open()
	p := b.articles(s)
	batch := inTurn(batchOf("a", 0, rowOf(1, 5)), func() error { return flush.ErrGaveWay }, rowOf(2, 5))
	if out, err := s.Apply(t.Context(), fenceOf(1), p, batch); !errors.Is(err, flush.ErrGaveWay) || errors.Is(err, flush.ErrTransient) ||
		out.Applied {
		t.Errorf("got %+v, %v", out, err)
	}
	b.has("articles", "id")
	if out := b.apply(s, fenceOf(1), p, batchOf("a", 0, rowOf(1, 5), rowOf(2, 5))); !out.Applied {
		t.Error("the ledger has a batch that was not applied")
	}
	b.has("articles", "id views", "1|5", "2|5")
}

// If two batches write the same row, the values of the later batch remain.
func lateRowsMeetWhatTheBatchesBeforeHaveWritten(_ *testing.T, b *sinkCase) {
	s := b.open()
	p := b.people(s)
	b.apply(s, fenceOf(1), p, inTurn(batchOf("a", 1, rowOf(2, "Bob", 2)), func() error {
		b.apply(s, fenceOf(1), p, batchOf("a", 0, rowOf(1, "first", 1), rowOf(3, "Cid", 3), rowOf(4, "Dan", 4)))
		return nil
	}, rowOf(1, "second", nil), goneOf(3, 3)))
	b.has("people", "id name age", "1|second|-", "2|Bob|2", "4|Dan|4")
}

// A row that the table refuses before the turn of its batch may fit after the earlier batches. If the locks of the row's batch delay the
// earlier batches, this batch gives way.
func rowsRefusedAheadAreTriedInTheirTurn(t *testing.T, b *sinkCase) {
	s := b.open()
	spec := row.TableSpec{Name: "seats", Key: []string{"id"}, Unique: []string{"seat"}, Columns: []row.Column{
		{Name: "id", Kind: row.KindInteger, Bits: 64}, {Name: "seat", Kind: row.KindInteger, Bits: 64},
	}}
	if err := s.(flush.TableCreator).CreateTable(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	p := b.plan(s, "seats", "id")
	b.apply(s, fenceOf(1), p, batchOf("a", 0, rowOf(1, 10), rowOf(2, 20)))
	before, behind := batchOf("a", 1, goneOf(2, 1)), batchOf("a", 2, rowOf(3, 10), rowOf(4, 40))
	out, err := s.Apply(t.Context(), fenceOf(1), p, inTurn(behind, func() error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := s.Apply(ctx, fenceOf(1), p, before)
		if errors.Is(err, flush.ErrTransient) {
			return flush.ErrGaveWay
		}
		return err
	}))
	if errors.Is(err, flush.ErrGaveWay) {
		b.apply(s, fenceOf(1), p, before)
		out, err = s.Apply(t.Context(), fenceOf(1), p, behind)
	}
	if err != nil || out.Rows != 2 || len(out.Dead) != 0 {
		t.Errorf("outcome %+v, %v", out, err)
	}
	b.has("seats", "id seat", "2|20", "3|10", "4|40")
}

func theLedgerKnowsABatchThatIsBegunAhead(t *testing.T, b *sinkCase) {
	s := b.open()
	p := b.articles(s)
	b.apply(s, fenceOf(1), p, batchOf("a", 1, rowOf(1, 5)))
	if out := b.apply(s, fenceOf(1), p, inTurn(batchOf("a", 1, rowOf(1, 5)), atOnce)); out.Applied {
		t.Error("applied twice")
	}
	b.has("articles", "id views", "1|5")
}

func aPositionIsMovedInItsTurn(t *testing.T, b *sinkCase) {
	s := b.open()
	p := b.articles(s)
	second := inTurn(movingOf("1", "2", rowOf(2, 5)), func() error {
		b.apply(s, fenceOf(1), p, movingOf("", "1", rowOf(1, 5)))
		return nil
	})
	if out := b.apply(s, fenceOf(1), p, second); !out.Applied {
		t.Error("not applied")
	}
	b.recorded(s.Positions(t.Context(), fenceOf(1), []string{"s"}))("2")
	second = inTurn(movingOf("1", "2", rowOf(2, 5)), atOnce)
	if out := b.apply(s, fenceOf(1), p, second); out.Applied {
		t.Error("applied twice")
	}
	_, err := s.Apply(t.Context(), fenceOf(1), p, inTurn(movingOf("3", "4", rowOf(3, 5)), atOnce))
	if !errors.Is(err, flush.ErrMoved) {
		t.Errorf("a batch that starts elsewhere: %v", err)
	}
	b.has("articles", "id views", "1|5", "2|5")
}

// If a leader is deposed while a batch waits for its turn, the batch is not committed.
func aBatchThatWaitsIsFencedOff(t *testing.T, b *sinkCase) {
	s, successor := b.open(), b.Open(t, nil)
	p := b.articles(s)
	_, err := s.Apply(t.Context(), fenceOf(1), p, inTurn(batchOf("a", 0, rowOf(1, 5)), func() error {
		b.takeOver(successor, fenceOf(2))
		return nil
	}))
	b.fenced(err, 2)
	b.has("articles", "id")
}
