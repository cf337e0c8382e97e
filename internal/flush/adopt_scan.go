package flush

import (
	"context"
	"fmt"
	"strconv"

	"baton/internal/flush/row"
)

// Each run of a scan is a pass over all data, and a scan has no position. The texts about its acceptances are stored in the same place as
// those of a capture. A scan differs from a capture in two ways:
//
// A job without a basis is new, unless it ran before baton asked for acceptances. The migration that introduced acceptances recorded
// RanBefore for each job that had a fence. Such a job owns its rows. A fence alone proves nothing, since a new job takes one before its
// first page.
//
// Only a pass finds a change by the application. So a scan must know which rows are its own, because it writes and deletes its own rows
// without an acceptance. Its own rows are those that a pass with the present mapping has written. Such a row has a generation that is not
// below the mapping's first generation, which is recorded before the mapping's first page. A scan without a generation column cannot know
// its own rows, and changes no existing row without an acceptance.

// RanBefore is the name of the record which says that a job ran before baton asked for acceptances.
const RanBefore = "ran before"

// sinceName returns the name of the record that contains the first generation of a mapping. The argument digest identifies the mapping.
func sinceName(digest string) string { return "since " + digest }

// OwnRows identifies the rows that passes of the job have written. In these rows the value of the column Column is at least Since. If
// Column is "", OwnRows identifies no rows.
type OwnRows struct {
	Column string
	Since  int64
}

// passOf describes the data that a source has read for a stage, if the source is one that can read everything. The result ok is false for
// other sources.
func passOf(source Source, stage Stage) (p Passed, ok bool) {
	switch source := source.(type) {
	case KeySweeper:
		return source.Passed(stage), true
	case Sweeper:
		_, missed := source.Pass(stage)
		return Passed{Everything: true, Missed: missed}, true
	}
	return p, false
}

// readOwnership reads the records that decide which rows of the table belong to a scan job.
func (r *run) readOwnership(ctx context.Context, source Source) error {
	if _, ok := source.(Sweeper); !ok || r.cfg.Adopt.Differ == nil {
		return nil
	}
	digest := r.basis().mapping
	found, err := r.positions(ctx, source, basisName, AdoptionName(digest), sinceName(digest), RanBefore)
	if err != nil {
		return err
	}
	r.recorded, r.adoption = found[0], found[1]
	r.since, _ = strconv.ParseInt(found[2], 10, 64) // 0: not recorded yet
	was, ok := parseBasis(r.recorded)
	if !ok && found[3] != "" {
		r.say(true, source.Name()+": the job ran before baton recorded mappings, so baton assumes that the rows belong to the job")
		was, ok = r.basis(), true
		// The basis is recorded before recordOwned is called. So if the job's configuration changes between these two steps, only the rows
		// of this mapping belong to the job.
		if err := r.recordBasis(ctx, was); err != nil {
			return err
		}
	}
	if ok && was.owned(digest) || r.adoption == adoptAdopted || r.cfg.Adopt.Mode != AdoptAsk {
		r.waits(Unaccepted{})
	} else {
		r.stillWaits()
	}
	if !ok {
		return nil
	}
	return r.recordOwned(ctx)
}

// ownOf returns the OwnRows that identify the rows of a scan job. It records the first generation of the present mapping, before the first
// page of this mapping is written.
func (r *run) ownOf(ctx context.Context, source Source, stage Stage, owned bool) (OwnRows, error) {
	sweeper, ok := source.(Sweeper)
	if !ok || r.cfg.Mapping.Generation == "" {
		return OwnRows{}, nil
	}
	if r.since == 0 {
		since := int64(1) // all rows that a pass has ever written
		if !owned {
			since, _ = sweeper.Pass(stage)
		}
		if err := r.recordText(ctx, sinceName(r.basis().mapping), "", strconv.FormatInt(since, 10)); err != nil {
			return OwnRows{}, err
		}
		r.since = since
	}
	return OwnRows{Column: r.cfg.Mapping.Generation, Since: r.since}, nil
}

// checkGuarded decides which rows a sweep may delete if a limit applies to its deletions. The sweep may delete vanished rows whose
// generation is at least the result since. Vanished rows that were written with an earlier mapping do not belong to the job, so they count
// against the number of accepted deletions.
func (r *run) checkGuarded(ctx context.Context, sweeper Sweeper, g *changeLimit, generation int64) (since int64, err error) {
	var own, theirs int64
	err = r.eachStale(ctx, generation, 1, func(texts [][]string) error {
		missing, err := r.missing(ctx, sweeper, r.vanished.records(texts))
		for _, one := range missing {
			if r.isOwn(one, g.own.Since) {
				own++
			} else {
				theirs++
			}
		}
		return err
	})
	if err != nil {
		return 0, err
	}
	since = 1
	if g.leaves(theirs) {
		since, theirs = g.own.Since, 0
	}
	return since, r.checkShare(ctx, sweeper, generation, own+theirs)
}

// isOwn reports whether a pass has written the row of this record with a generation that is at least the argument since.
func (r *run) isOwn(record row.Record, since int64) bool {
	made, err := r.vanished.Row(record)
	if err != nil {
		return false
	}
	return made.Values[len(made.Values)-1].Int() >= since
}

// eachStale calls the function do, page by page, with the rows that earlier passes have written. It leaves out the rows whose generation is
// below the argument since, and the rows of the current pass.
func (r *run) eachStale(ctx context.Context, current, since int64, do func(texts [][]string) error) error {
	v := r.vanished
	for behind := []row.Value(nil); ; {
		if err := ended(ctx); err != nil {
			return err
		}
		texts, err := retry(ctx, r.cfg.Retry, func() ([][]string, error) {
			return v.finder.StaleRows(ctx, v.Plan(), current, behind, sweepRows)
		})
		if err != nil {
			return fmt.Errorf("find the rows of table %q that have vanished: %w", r.cfg.Mapping.Table, err)
		}
		if len(texts) == 0 {
			return nil
		}
		if behind, err = v.Key(texts[len(texts)-1]); err != nil {
			return fmt.Errorf("table %q: %w", r.cfg.Mapping.Table, err)
		}
		if err := do(writtenSince(texts, since)); err != nil {
			return err
		}
	}
}

// writtenSince returns the rows whose generation is at least the argument since. Each row is a list of texts, and its last text is the
// generation.
func writtenSince(texts [][]string, since int64) [][]string {
	if since <= 1 {
		return texts
	}
	kept := texts[:0]
	for _, one := range texts {
		if n, err := strconv.ParseInt(one[len(one)-1], 10, 64); err == nil && n >= since {
			kept = append(kept, one)
		}
	}
	return kept
}
