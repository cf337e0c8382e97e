package flush_test

import (
	"context"
	"errors"
	"testing"

	"baton/internal/flush"
	"baton/internal/flush/flushtest"
	"baton/internal/flush/mapping"
	"baton/internal/flush/row"
)

// recording is a sink that keeps records in the database in memory.
type recording struct{ *flushtest.Database }

func (r recording) Recorded(_ context.Context, job, name string) (string, error) {
	return r.Place(job, name), nil
}

func (r recording) Replace(_ context.Context, job, name, old, text string) error {
	if r.Place(job, name) != old {
		return flush.ErrMoved
	}
	r.SetPlace(job, name, text)
	return nil
}

// differ is a Differ that no pass calls.
type differ struct{}

func (differ) Differing(context.Context, flush.Sink, *mapping.Mapping, []row.Row, flush.OwnRows) ([]flush.Differs, error) {
	return nil, errors.ErrUnsupported
}

func TestWhetherKeysOfACaptureMayBeMarked(t *testing.T) {
	for _, c := range []struct {
		mode             flush.AdoptMode
		recorded         string
		changes, deletes bool // whether such rows may be marked
	}{
		{flush.AdoptAsk, "", false, false}, {flush.AdoptAsk, "waits 1 1", false, false},
		{flush.AdoptAsk, "accepted 1 1 2026-01-01T00:00:00Z ann", false, false}, {flush.AdoptAsk, "adopted", true, true},
		{flush.AdoptInsertOnly, "adopted", false, false},
		{flush.AdoptOverwrite, "", true, false}, {flush.AdoptOverwrite, "adopted", true, true},
		{flush.AdoptDelete, "", true, true},
	} {
		p, db, record := marking(t, c.mode, row.ByChanges, nil)
		db.SetPlace(job, record, c.recorded)
		for deletes, want := range map[int64]bool{0: c.changes, 1: c.deletes} {
			_, err := p.MayMark(t.Context(), flush.Unaccepted{Deletes: deletes})
			if (err == nil) != want || err != nil && !errors.Is(err, flush.ErrUnaccepted) {
				t.Errorf("%s, %q, %d deletions: %v", c.mode, c.recorded, deletes, err)
			}
		}
		if now := db.Place(job, record); now != c.recorded {
			t.Errorf("%s, %q: the record is %q now", c.mode, c.recorded, now)
		}
	}
}

// marking returns a job, its database and the name of its acceptance.
func marking(t *testing.T, mode flush.AdoptMode, by row.Guarantee, onWaits func(flush.Unaccepted)) (*flush.Pipeline, *base, string) {
	t.Helper()
	cfg, db := users(flushtest.NewScript("s"))
	cfg.Job, cfg.Inputs.Guarantee = job, by
	cfg.Sink, cfg.Adopt = recording{db.Database}, flush.Adopt{Mode: mode, Differ: differ{}, OnUnaccepted: onWaits}
	p := mustNew(t, cfg)
	digest, err := p.Digest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return p, db, flush.AdoptionName(digest)
}

const job = "marks"

// A source that marks its changes makes no pass. So a backfill and a repair count the rows themselves, and ask for an acceptance.
func TestWhetherABackfillAndARepairMayMark(t *testing.T) {
	const accepted = "accepted 2 1 2026-01-01T00:00:00Z ann"
	for _, c := range []struct {
		mode             flush.AdoptMode
		recorded         string
		changes, deletes int64
		may, bounded     bool
		then             string // the record afterwards
	}{
		{flush.AdoptAsk, "", 0, 0, true, true, ""}, {flush.AdoptAsk, "", 1, 0, false, false, "waits 1 0"},
		{flush.AdoptAsk, "waits 1 0", 1, 0, false, false, "waits 1 0"}, {flush.AdoptAsk, "waits 1 0", 2, 1, false, false, "waits 2 1"},
		{flush.AdoptAsk, accepted, 2, 1, true, true, accepted}, {flush.AdoptAsk, accepted, 1, 0, true, true, accepted},
		{flush.AdoptAsk, accepted, 3, 1, false, false, "waits 3 1"}, {flush.AdoptAsk, accepted, 2, 2, false, false, "waits 2 2"},
		{flush.AdoptAsk, "adopted", 9, 9, true, false, "adopted"},
		{flush.AdoptInsertOnly, "adopted", 1, 0, false, false, "adopted"}, {flush.AdoptInsertOnly, "adopted", 0, 0, true, true, "adopted"},
		{flush.AdoptOverwrite, "", 9, 0, true, false, ""}, {flush.AdoptOverwrite, "", 9, 1, false, false, ""},
		{flush.AdoptOverwrite, "adopted", 9, 1, true, false, "adopted"}, {flush.AdoptDelete, "", 9, 9, true, false, ""},
	} {
		told := flush.Unaccepted{}
		p, db, record := marking(t, c.mode, row.ByState, func(w flush.Unaccepted) { told = w })
		if c.recorded != "" {
			db.SetPlace(job, record, c.recorded)
		}
		would := flush.Unaccepted{Changes: c.changes, Deletes: c.deletes}
		bounded, err := p.MayMark(t.Context(), would)
		if (err == nil) != c.may || bounded != c.bounded || err != nil && !errors.Is(err, flush.ErrUnaccepted) {
			t.Errorf("%s, %q, %+v: bounded %v, %v", c.mode, c.recorded, would, bounded, err)
		}
		if now := db.Place(job, record); now != c.then {
			t.Errorf("%s, %q, %+v: the record is %q, want %q", c.mode, c.recorded, would, now, c.then)
		}
		if waits := c.mode == flush.AdoptAsk && !c.may; waits != (told == would && told != (flush.Unaccepted{})) {
			t.Errorf("%s, %q, %+v: %+v wait", c.mode, c.recorded, would, told)
		}
	}
}

// A job that ran before baton asked owns its rows, but only with its first mapping.
func TestAJobThatRanBeforeBatonAskedMarksUnasked(t *testing.T) {
	for basis, may := range map[string]bool{"": true, "v1 another": false} {
		p, db, _ := marking(t, flush.AdoptAsk, row.ByState, nil)
		db.SetPlace(job, flush.RanBefore, "yes")
		db.SetPlace(job, "basis", basis)
		if _, err := p.MayMark(t.Context(), flush.Unaccepted{Changes: 1}); (err == nil) != may {
			t.Errorf("with the basis %q: %v", basis, err)
		}
		if must, err := p.MustCompare(t.Context()); must == may || err != nil {
			t.Errorf("with the basis %q: it must compare %v, %v", basis, must, err)
		}
	}
}
