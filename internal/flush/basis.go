package flush

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"baton/internal/flush/mapping"
	"baton/internal/flush/row"
)

// Changed is the reason for reading everything again.
type Changed int

// The reasons.
const (
	OtherMapping Changed = iota + 1 // the job makes other rows of its data than those in the table
	OtherTable                      // the table is another one of the same name, or was truncated
)

// A basis is all that the rows of a job in its table depend on. It is recorded beside the place of the job, under this name, once
// everything was read on it: so a crash in between leads to one more pass, never to one too few. It belongs to the job, not to its place:
// a pattern that is changed, and changed back, has its old place again.
const (
	basisName    = "basis"
	basisVersion = "v1"
)

type basis struct {
	mapping string // the digest of the mapping
	table   string // see row.Table.Identity
	// waits says that the job does not own all rows. It is the mode in which the last pass has left some rows as they are, or begun for a
	// job whose first pass has not ended.
	waits string
}

const (
	begun   = "begun"
	noTable = "-"
)

func (b basis) String() string {
	if b.waits == "" { // as earlier versions read and wrote it
		return strings.TrimSpace(basisVersion + " " + b.mapping + " " + b.table)
	}
	return strings.Join([]string{basisVersion, b.mapping, cmp.Or(b.table, noTable), b.waits}, " ")
}

// owned reports whether the rows that a pass with the mapping meets are the job's.
func (b basis) owned(mapping string) bool { return b.mapping == mapping && b.waits == "" }

// parseBasis reads the text that String wrote; ok is false for any other text.
func parseBasis(text string) (b basis, ok bool) {
	words := strings.Fields(text)
	if len(words) < 2 || words[0] != basisVersion {
		return b, false
	}
	b.mapping = words[1]
	if len(words) > 2 && words[2] != noTable {
		b.table = words[2]
	}
	if len(words) > 3 {
		b.waits = words[3]
	}
	return b, true
}

// digest identifies the resolved mapping: the origin of the rows, how they are made, and which may be deleted. A setting that is not in
// it may change without a pass; a new one at its default must leave it out.
func (p *Pipeline) digest(m *mapping.Mapping) string {
	said := struct {
		Origin, Table string
		OnMissing     OnMissing
		Deletes       bool `json:",omitempty"`
		Mapping       any
	}{p.cfg.Origin, p.cfg.Mapping.Table, p.cfg.OnMissing, p.cfg.VanishedPct > 0, m.Resolved(p.cfg.Mapping)}
	text, err := json.Marshal(said)
	if err != nil {
		panic(err) // it is made of texts
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

// basis is the present basis.
func (r *run) basis() basis {
	return basis{mapping: r.digest(r.m), table: r.m.Plan().Table.Identity}
}

// compareBasis makes the source read everything again if its rows were made on another basis. A job with a place and without a basis is
// of an earlier version: its rows are assumed to be made on the present basis.
func (r *run) compareBasis(ctx context.Context, source KeySweeper, position, recorded, adoption string) error {
	r.recorded, r.adoption = recorded, adoption
	if position == "" {
		return nil // the job is new, and reads everything in any case
	}
	now := r.basis()
	was, ok := parseBasis(recorded)
	if now.waits = was.waits; ok && (was.waits == "" || r.cfg.Adopt.Mode != AdoptAsk) {
		r.waits(Waits{})
	}
	switch {
	case !ok:
		r.note(source.Name() + ": the place of the job has no digest of its mapping: the present one is taken, without a pass")
		return errors.Join(r.recordOwned(ctx), r.recordBasis(ctx, now))
	case was.waits == begun && was.mapping == now.mapping:
		return nil // the place still requires the pass
	case was.mapping != now.mapping:
		source.Reread(OtherMapping, "the mapping of the job was changed")
	case was.table != now.table && was.table != "" && now.table != "":
		source.Reread(OtherTable, fmt.Sprintf("table %q was made again, truncated or restored", r.cfg.Mapping.Table))
	case was.waits != "" && (was.waits != string(r.cfg.Adopt.Mode) || r.cfg.Adopt.Mode == AdoptAsk && !r.stillWaits()):
		source.Reread(OtherMapping, "its rights on rows that were there before were decided")
	case was != now: // the database can now report the table's identity, or no longer can
		return errors.Join(r.recordOwned(ctx), r.recordBasis(ctx, now))
	}
	return r.recordOwned(ctx)
}

// recordOwned records that the rows are the job's, for a job of an earlier version, which did not record that: so a job that is changed,
// and changed back, needs no acceptance.
func (r *run) recordOwned(ctx context.Context) error {
	was, ok := parseBasis(r.recorded)
	if r.adoption != "" || r.cfg.Adopt.Differ == nil || ok && !was.owned(r.basis().mapping) {
		return nil
	}
	return r.recordAdoption(ctx, adoptAdopted)
}

// stillWaits reports whether rows still wait for an acceptance, and calls OnWaits.
func (r *run) stillWaits() bool {
	w, ok := ParseWaits(r.adoption)
	if ok {
		r.waits(w)
	}
	return ok
}

// readOn records the basis on which a source was read, if that reading was complete.
func (r *run) readOn(ctx context.Context, source Source, stage Stage) error {
	passed, ok := passOf(source, stage)
	if !ok || !passed.Everything || passed.Missed != nil || r.cfg.Inputs.Guarantee == row.ByPass && r.cfg.Adopt.Differ == nil {
		return nil //nolint:nilerr // Missed is a state, and the next pass owes it still
	}
	left := stage.guard.leftAlone()
	if err := r.recordLeft(ctx, left); err != nil {
		return err
	}
	now := r.basis()
	if left != (Waits{}) {
		now.waits = string(r.cfg.Adopt.Mode)
	}
	return r.recordBasis(ctx, now)
}

// recordBasis records a basis.
func (r *run) recordBasis(ctx context.Context, b basis) error {
	text := b.String()
	if text == r.recorded {
		return nil
	}
	err := r.recordText(ctx, basisName, r.recorded, text)
	if err == nil {
		r.recorded = text
	}
	return err
}

// recordText records a text beside the place, under the fence.
func (r *run) recordText(ctx context.Context, name, from, to string) error {
	if err := r.connect(ctx); err != nil {
		return err
	}
	defer r.disconnect()
	b := Batch{ID: name, Shard: name, Part: -1, Move: &Move{From: from, To: to}}
	_, err := retry(ctx, r.cfg.Retry, func() (Outcome, error) { return r.cfg.Sink.Apply(ctx, r.fence, r.m.Plan(), b) })
	if err != nil {
		return fmt.Errorf("record on which mapping the rows of table %q are: %w", r.cfg.Mapping.Table, err)
	}
	return nil
}
