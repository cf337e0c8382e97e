package flush

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"baton/internal/flush/mapping"
	"baton/internal/flush/row"
)

// A pass reads all records of the source. In the table it may find rows that its job never wrote. The pass inserts missing rows. The rows
// that the job never wrote stay unchanged until an operator accepts them as the job's rows. This rule applies only to passes. When the
// application changes a record, the record's row is written at once.
//
// Whether the rows are accepted is recorded next to the job's position, for each digest of the mapping, as one of three texts:
//
//	waits CHANGES DELETES              a pass has left that many rows unchanged
//	accepted CHANGES DELETES WHEN BY   an operator has accepted them: the next pass may change and delete that many
//	adopted                            a pass had no row to leave, or the table was empty: all rows are the job's
//
// If a pass would change more rows than were accepted, it leaves the rest unchanged, and the rest waits for another acceptance. The record
// is written before the basis of the pass, so a crash in between leads to one more pass with the same rights. A new job records its basis
// before its first page, with the state "begun". So a position without a basis belongs to a job of an earlier version, which owns its rows.

// AdoptMode decides how a pass may treat rows that are already in the table and that the job never wrote.
type AdoptMode string

// These are the modes.
const (
	AdoptAsk        AdoptMode = "ask"         // changes and deletes only as many existing rows as were accepted; the default
	AdoptInsertOnly AdoptMode = "insert_only" // never changes or deletes existing rows
	AdoptOverwrite  AdoptMode = "overwrite"   // changes existing rows, and deletes none
	AdoptDelete     AdoptMode = "delete"      // changes and deletes existing rows
)

// Differ compares rows that a pass would write with the rows that are in the table.
type Differ interface {
	// Differing reports for each row whether the table has a row with the same key, and whether that row differs or is the job's own.
	Differing(ctx context.Context, sink Sink, m *mapping.Mapping, rows []row.Row, own OwnRows) ([]Differs, error)
}

// Differs is the result of comparing a row with the table's row of the same key.
type Differs int

// These are the results of a comparison.
const (
	RowMissing Differs = iota
	RowEqual
	RowDiffers
	RowOwn // a pass of the job wrote the table's row
)

// Adopt configures how passes treat rows that the job never wrote.
type Adopt struct {
	Mode   AdoptMode
	Differ Differ // nil: a pass may change and delete any row
	// OnUnaccepted, if set, receives the number of rows that wait for an acceptance, or the zero value if no row waits.
	OnUnaccepted func(Unaccepted)
}

// Unaccepted counts the rows that a pass would have changed or deleted, but left unchanged because they are not accepted.
type Unaccepted struct{ Changes, Deletes int64 }

// AdoptionName returns the name of the record that says whether the rows are accepted, for the mapping with this digest.
func AdoptionName(digest string) string { return "adoption " + digest }

// AcceptanceName returns the name of the record with the last acceptance, for the mapping with this digest. This record is kept even after
// the rows are adopted.
func AcceptanceName(digest string) string { return "acceptance " + digest }

const (
	adoptWaits    = "waits"
	adoptAccepted = "accepted"
	adoptAdopted  = "adopted"
)

// ErrNothingWaits means that there are no rows for an operator to accept.
var ErrNothingWaits = errors.New("flush: nothing waits to be accepted")

// ParseWaits parses the record that says how many rows wait for an acceptance. The result ok is false for any other record.
func ParseWaits(text string) (w Unaccepted, ok bool) {
	ok = w.read(adoptWaits, text)
	return w, ok
}

// read parses a record that has the state in the argument state. It returns false for any other record.
func (w *Unaccepted) read(state, text string) bool {
	rest, ok := strings.CutPrefix(text, state+" ")
	if !ok {
		return false
	}
	_, err := fmt.Sscan(rest, &w.Changes, &w.Deletes)
	return err == nil
}

// ParseAccepted parses the record of an acceptance: the accepted numbers of rows, and who has accepted them. The result ok is false for any
// other record.
func ParseAccepted(text string) (w Unaccepted, by string, ok bool) {
	if words := strings.SplitN(text, " ", 5); len(words) == 5 {
		by = words[4]
	}
	ok = w.read(adoptAccepted, text)
	return w, by, ok
}

// IsAdopted reports whether a record says that all rows of the table belong to the job.
func IsAdopted(text string) bool { return text == adoptAdopted }

// Accept returns the record that accepts the rows that wait for an acceptance according to the record text. If text already is an
// acceptance, Accept returns it unchanged.
func Accept(text, by string, at time.Time) (string, error) {
	if _, _, ok := ParseAccepted(text); ok {
		return text, nil
	}
	w, ok := ParseWaits(text)
	if !ok {
		return "", ErrNothingWaits
	}
	return fmt.Sprintf("%s %d %d %s %s", adoptAccepted, w.Changes, w.Deletes, at.UTC().Format(time.RFC3339), by), nil
}

// changeLimit limits how many existing rows a pass may change and delete. A nil changeLimit means that there is no limit.
type changeLimit struct {
	mu                    sync.Mutex
	allowed, did, skipped Unaccepted
	own                   OwnRows
	touches               bool // rows that are equal are also written, which changes only their generation
	// first means that no earlier pass with the same permission to change rows has ended. So rows that differ are rows that the job never
	// wrote. A pass that follows an acceptance is always such a first pass.
	first bool
}

// changeLimitOf returns the limit for the pass that reads this stage. It returns nil if the pass has no limit, or if the stage belongs to
// no pass.
func (r *run) changeLimitOf(ctx context.Context, source Source, stage Stage) (*changeLimit, error) {
	a := r.cfg.Adopt
	passed, ok := passOf(source, stage)
	if !ok || !passed.Everything || a.Differ == nil || len(r.m.Plan().Key) == 0 || r.m.Adds() {
		return nil, nil
	}
	was, ok := parseBasis(r.recorded)
	if !ok { // the basis is recorded before the position, because a position without a basis means a job of an earlier version
		now := r.basis()
		now.waits = begun
		if err := r.recordBasis(ctx, now); err != nil {
			return nil, err
		}
	}
	owned := ok && was.owned(r.basis().mapping) || r.adoption == adoptAdopted
	if a.Mode == AdoptDelete && (owned || r.cfg.KeepDeleted == 0) || a.Mode == AdoptAsk && owned {
		return nil, nil
	}
	own, err := r.ownOf(ctx, source, stage, owned)
	if err != nil {
		return nil, err
	}
	g := &changeLimit{
		own: own, touches: own.Column != "" && r.m.Mode() != mapping.ModeReplace,
		first: !owned && (a.Mode == AdoptAsk || was.mapping != r.basis().mapping || was.waits != string(a.Mode)),
	}
	switch a.Mode {
	case AdoptInsertOnly:
		return g, nil
	case AdoptOverwrite:
		g.allowed.Changes = math.MaxInt64
		return g, nil
	case AdoptDelete: // the comparison finds the rows to keep
		g.allowed = Unaccepted{Changes: math.MaxInt64, Deletes: math.MaxInt64}
		return g, nil
	}
	if g.allowed.read(adoptAccepted, r.adoption) {
		return g, nil
	}
	empty, err := r.isEmpty(ctx)
	if err != nil || !empty {
		return g, err
	}
	// If the pass dies, the rows that it has written belong to the job.
	return nil, r.recordAdoption(ctx, adoptAdopted)
}

// isEmpty reports whether the job's table contains no rows.
func (r *run) isEmpty(ctx context.Context) (bool, error) {
	lister, ok := r.cfg.Sink.(KeyLister)
	if !ok {
		return false, nil
	}
	whole := r.m.Plan()
	keys := &row.Plan{Table: whole.Table}
	for i, at := range whole.Key {
		keys.Key, keys.Columns = append(keys.Key, i), append(keys.Columns, row.PlanColumn{Column: whole.Columns[at].Column})
	}
	if err := r.connect(ctx); err != nil {
		return false, err
	}
	defer r.disconnect()
	texts, err := retry(ctx, r.cfg.Retry, func() ([][]string, error) { return lister.KeyRows(ctx, keys, KeyRange{Limit: 1}) })
	if err != nil {
		return false, fmt.Errorf("look for rows in table %q: %w", r.cfg.Mapping.Table, err)
	}
	return len(texts) == 0, nil
}

// keep returns the rows of a page that the pass may write.
func (g *changeLimit) keep(ctx context.Context, r *run, source Source, rows []row.Row) ([]row.Row, error) {
	if g == nil || len(rows) == 0 {
		return rows, nil
	}
	if err := r.connect(ctx); err != nil {
		return nil, err
	}
	differs, err := retry(ctx, r.cfg.Retry, func() ([]Differs, error) {
		return r.cfg.Adopt.Differ.Differing(ctx, r.cfg.Sink, r.m, rows, g.own)
	})
	r.disconnect()
	if err != nil {
		return nil, fmt.Errorf("compare a page of %s with table %q: %w", source.Name(), r.cfg.Mapping.Table, err)
	}
	pending, err := g.pending(ctx, source, rows, differs)
	if err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	kept := rows[:0]
	for i := range rows {
		switch {
		case differs[i] == RowMissing && !rows[i].Delete, differs[i] == RowOwn, differs[i] == RowEqual && g.touches:
		case differs[i] != RowDiffers && !rows[i].Delete, differs[i] == RowMissing, pending[rows[i].Record.Key]:
			continue
		case rows[i].Delete:
			if !take(g.allowed.Deletes, &g.did.Deletes, &g.skipped.Deletes) {
				continue
			}
		case !take(g.allowed.Changes, &g.did.Changes, &g.skipped.Changes):
			continue
		}
		rows[i].Adopted = g.first && differs[i] == RowDiffers
		kept = append(kept, rows[i])
	}
	return kept, nil
}

// take reports whether one more row may be written. The maximum number of such rows is the argument may. Below this maximum, take adds 1 to
// the counter did. Otherwise it adds 1 to the counter left.
func take(may int64, did, left *int64) bool {
	if *did < may {
		*did++
		return true
	}
	*left++
	return false
}

// pending returns the keys of the rows that differ and whose records have changes by the application that are not yet written. The pass
// skips these rows, because the next batch writes them.
func (g *changeLimit) pending(ctx context.Context, source Source, rows []row.Row, differs []Differs) (map[string]bool, error) {
	var records []row.Record
	for i := range rows {
		if differs[i] == RowDiffers {
			records = append(records, rows[i].Record)
		}
	}
	sweeper, ok := source.(KeySweeper)
	if len(records) == 0 || !ok {
		return nil, nil
	}
	pending := make(map[string]bool, len(records))
	for _, one := range records { // before the call of Unaccounted, which may overwrite records
		pending[one.Key] = true
	}
	others, err := sweeper.Unaccounted(ctx, records)
	if err != nil {
		return nil, failedSource(ctx, "look for changes of", source, err)
	}
	for _, one := range others {
		pending[one.Key] = false
	}
	return pending, nil
}

// leaves reports whether the sweep must leave the vanished rows in the table, because it would otherwise delete more rows than the limit
// allows.
func (g *changeLimit) leaves(vanished int64) bool {
	if g == nil || g.did.Deletes+vanished <= g.allowed.Deletes {
		return false
	}
	g.skipped.Deletes += vanished
	return true
}

// leftAlone returns how many rows the pass has left unchanged because of the limit.
func (g *changeLimit) leftAlone() Unaccepted {
	if g == nil {
		return Unaccepted{}
	}
	return g.skipped
}

// recordLeft records, after a complete pass, how many rows the pass has left unchanged.
func (r *run) recordLeft(ctx context.Context, left Unaccepted) error {
	a := r.cfg.Adopt
	if a.Differ == nil {
		return nil
	}
	if left == (Unaccepted{}) {
		r.waits(left)
		return r.recordAdoption(ctx, adoptAdopted)
	}
	// Every run of a scan is a pass, so only the first of equal reports is shown.
	told := r.cfg.Inputs.Guarantee == row.ByPass && r.toldLeft == left
	r.toldLeft = left
	what := fmt.Sprintf("table %q had rows that job %q never wrote. A pass over all keys would change %d and delete %d of them, but "+
		"left them unchanged", r.cfg.Mapping.Table, r.cfg.Job, left.Changes, left.Deletes)
	if a.Mode != AdoptAsk {
		if !told {
			r.note(fmt.Sprintf("%s because of `adopt: %s`", what, a.Mode))
		}
		r.waits(Unaccepted{})
		return nil
	}
	if !told {
		r.noteLeft(what)
	}
	r.waits(left)
	return r.recordAdoption(ctx, fmt.Sprintf("%s %d %d", adoptWaits, left.Changes, left.Deletes))
}

// noteLeft notes, for an operator, what to do about the rows that a pass has left unchanged.
func (r *run) noteLeft(what string) {
	flows := "changes by the application are written"
	if r.cfg.Inputs.Guarantee == row.ByPass && r.cfg.Mapping.Generation == "" {
		flows = "without `generation`, the scan inserts missing rows and writes no other row, because it cannot tell which rows it wrote"
	}
	r.note(fmt.Sprintf("%s; %s. `baton job preview %s --all` shows these rows. If they belong to the job, run `baton job accept %s`", what,
		flows, r.cfg.Job, r.cfg.Job))
}

// recordAdoption replaces the record that says whether the rows are accepted, for the present mapping. The argument text is the new record.
func (r *run) recordAdoption(ctx context.Context, text string) error {
	if text == r.adoption {
		return nil
	}
	err := r.recordText(ctx, AdoptionName(r.basis().mapping), r.adoption, text)
	if err == nil {
		r.adoption = text
	}
	return err
}

func (r *run) waits(w Unaccepted) {
	if r.cfg.Adopt.OnUnaccepted != nil {
		r.cfg.Adopt.OnUnaccepted(w)
	}
}
