package flush

import (
	"context"
	"fmt"
	"strconv"

	"baton/internal/flush/row"
)

// Each run of a scan is a pass, and a scan has no place. Its records stand where those of a capture do. Two facts differ:
//
// A job without a basis is new, unless it ran before baton asked. The migration that brought the question has recorded RanBefore for
// each job that had a fence by then. Such a job owns its rows. A fence alone proves nothing: a new job has one before its first page.
//
// A change by the application is found by a pass, too. So a row is the job's own, and is written and deleted unasked, if a pass over
// the present mapping has written it. Its generation tells that: it is not below the first one, which is recorded before its first page.
// A scan without a generation cannot tell, and writes over no row until that is accepted.

// RanBefore is the name of the record of a job that ran before baton asked.
const RanBefore = "ran before"

// sinceName is the name under which the first generation of a digest is recorded.
func sinceName(digest string) string { return "since " + digest }

// Own tells the rows that passes of the job have written: those with at least Since in the column. Without a column it tells none.
type Own struct {
	Column string
	Since  int64
}

// passOf describes the reading of a stage by a source that can read everything; ok is false for other sources.
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

// readOwnership reads the records that tell which rows of a scan are the own rows of the job.
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
		r.say(true, source.Name()+": the job ran before its mapping was recorded: its rows are its own")
		was, ok = r.basis(), true
		if err := r.recordBasis(ctx, was); err != nil { // before recordOwned: a job that is changed in between owns this mapping alone
			return err
		}
	}
	if ok && was.owned(digest) || r.adoption == adoptAdopted || r.cfg.Adopt.Mode != AdoptAsk {
		r.waits(Waits{})
	} else {
		r.stillWaits()
	}
	if !ok {
		return nil
	}
	return r.recordOwned(ctx)
}

// ownOf tells the rows of a scan that are its own. It records the first generation of the present mapping, before its first page.
func (r *run) ownOf(ctx context.Context, source Source, stage Stage, owned bool) (Own, error) {
	sweeper, ok := source.(Sweeper)
	if !ok || r.cfg.Mapping.Generation == "" {
		return Own{}, nil
	}
	if r.since == 0 {
		since := int64(1) // all rows that a pass has ever written
		if !owned {
			since, _ = sweeper.Pass(stage)
		}
		if err := r.recordText(ctx, sinceName(r.basis().mapping), "", strconv.FormatInt(since, 10)); err != nil {
			return Own{}, err
		}
		r.since = since
	}
	return Own{Column: r.cfg.Mapping.Generation, Since: r.since}, nil
}

// checkGuarded decides from which generation on a guarded sweep may delete rows. Vanished rows of earlier passes are not the job's own:
// they count against the acceptance.
func (r *run) checkGuarded(ctx context.Context, sweeper Sweeper, g *guard, generation int64) (since int64, err error) {
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

// isOwn reports whether a record was made of a row that a pass since a generation has written.
func (r *run) isOwn(record row.Record, since int64) bool {
	made, err := r.vanished.Row(record)
	if err != nil {
		return false
	}
	return made.Values[len(made.Values)-1].Int() >= since
}

// eachStale goes through the rows that passes since a generation have written, and not the current one.
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

// writtenSince are the rows with a generation that is not below another one. It is their last text.
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
