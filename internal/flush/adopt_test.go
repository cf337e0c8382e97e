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

// recording is a sink that tells what is recorded.
type recording struct{ *flushtest.Database }

func (r recording) Recorded(_ context.Context, job, name string) (string, error) {
	return r.Place(job, name), nil
}

// differ is one that no pass asks.
type differ struct{}

func (differ) Differing(context.Context, flush.Sink, *mapping.Mapping, []row.Row, flush.Own) ([]flush.Differs, error) {
	return nil, errors.ErrUnsupported
}

func TestWhetherKeysMayBeMarked(t *testing.T) {
	for _, c := range []struct {
		mode             flush.AdoptMode
		recorded         string
		changes, deletes bool // what may be marked
	}{
		{flush.AdoptAsk, "", false, false}, {flush.AdoptAsk, "waits 1 1", false, false},
		{flush.AdoptAsk, "accepted 1 1 2026-01-01T00:00:00Z ann", false, false}, {flush.AdoptAsk, "adopted", true, true},
		{flush.AdoptInsertOnly, "adopted", false, false},
		{flush.AdoptOverwrite, "", true, false}, {flush.AdoptOverwrite, "adopted", true, true},
		{flush.AdoptDelete, "", true, true},
	} {
		cfg, db := users(flushtest.NewScript("s"))
		cfg.Sink, cfg.Adopt = recording{db.Database}, flush.Adopt{Mode: c.mode, Differ: differ{}}
		p := mustNew(t, cfg)
		digest, err := p.Digest(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		db.SetPlace(cfg.Job, flush.AdoptionName(digest), c.recorded)
		for deletes, want := range map[bool]bool{false: c.changes, true: c.deletes} {
			if err := p.MayMark(t.Context(), deletes); (err == nil) != want || err != nil && !errors.Is(err, flush.ErrUnaccepted) {
				t.Errorf("%s, %q, deletes %v: %v", c.mode, c.recorded, deletes, err)
			}
		}
	}
}
