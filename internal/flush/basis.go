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

// Changed is the reason why a source must read all of its data again.
type Changed int

// These are the reasons.
const (
	OtherMapping Changed = iota + 1 // the job would make other rows of its data than those in the table
	OtherTable                      // the table is a different table of the same name, or was truncated
)

// A basis is everything that determines the rows of a job in its table. A basis is recorded under the name basisName next to the job's
// position, after everything was read on that basis. So a crash before the basis is recorded causes an extra pass, and never a missing
// pass. There is one basis for a job, not one for each of its positions. The reason is that a job whose key pattern is changed and changed
// back uses its old position again.
const (
	basisName    = "basis"
	basisVersion = "v1"
)

type basis struct {
	mapping string // the digest of the mapping
	table   string // see row.Table.Identity
	// waits is not empty if the job does not own all rows. It is the mode of the last pass that has left rows unchanged, or the constant
	// begun if the job's first pass has not ended.
	waits string
}

const (
	begun   = "begun"
	noTable = "-"
)

func (b basis) String() string {
	if b.waits == "" { // earlier versions also read and write this form
		return strings.TrimSpace(basisVersion + " " + b.mapping + " " + b.table)
	}
	return strings.Join([]string{basisVersion, b.mapping, cmp.Or(b.table, noTable), b.waits}, " ")
}

// owned reports whether all rows that a pass with this mapping finds belong to the job.
func (b basis) owned(mapping string) bool { return b.mapping == mapping && b.waits == "" }

// parseBasis parses a text that the method String of a basis has returned. The result ok is false for any other text.
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

// digest returns a digest of the resolved mapping. The resolved mapping says where the rows come from, how they are made, and which of them
// are deleted. If a setting that is not in the digest changes, no new pass is made. A setting that is added to baton must not change the
// digest while it has its default value.
func (p *Pipeline) digest(m *mapping.Mapping) string {
	said := struct {
		Origin, Table string
		OnMissing     OnMissing
		Deletes       bool `json:",omitempty"`
		Mapping       any
	}{p.cfg.Origin, p.cfg.Mapping.Table, p.cfg.OnMissing, p.cfg.VanishedPct > 0, m.Resolved(p.cfg.Mapping)}
	text, err := json.Marshal(said)
	if err != nil {
		panic(err) // Marshal cannot fail for a value that consists of texts
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

// basis returns the basis of the present run: the mapping and the identity of the table that the run uses.
func (r *run) basis() basis {
	return basis{mapping: r.digest(r.m), table: r.m.Plan().Table.Identity}
}

// compareBasis makes the source read everything again if the rows were made on another basis. If a job has a position and no basis, an
// earlier version of baton has run it. In this case baton assumes that the job's rows were made on the present basis.
func (r *run) compareBasis(ctx context.Context, source KeySweeper, position, recorded, adoption string) error {
	r.recorded, r.adoption = recorded, adoption
	if position == "" {
		return nil // the job is new, and reads everything in any case
	}
	now := r.basis()
	was, ok := parseBasis(recorded)
	if now.waits = was.waits; ok && (was.waits == "" || r.cfg.Adopt.Mode != AdoptAsk) {
		r.waits(Unaccepted{})
	}
	switch {
	case !ok:
		r.note(source.Name() + ": no mapping was recorded with the job's position, so baton records the present mapping, " +
			"without a new pass")
		return errors.Join(r.recordOwned(ctx), r.recordBasis(ctx, now))
	case was.waits == begun && was.mapping == now.mapping:
		return nil // the position still requires the pass
	case was.mapping != now.mapping:
		source.Reread(OtherMapping, "the mapping of the job was changed")
	case was.table != now.table && was.table != "" && now.table != "":
		source.Reread(OtherTable, fmt.Sprintf("table %q was created again, truncated or restored", r.cfg.Mapping.Table))
	case was.waits != "" && (was.waits != string(r.cfg.Adopt.Mode) || r.cfg.Adopt.Mode == AdoptAsk && !r.stillWaits()):
		source.Reread(OtherMapping, "it was decided whether the job may change rows that it did not write")
	case was != now: // the database can now report the table's identity, or no longer can
		return errors.Join(r.recordOwned(ctx), r.recordBasis(ctx, now))
	}
	return r.recordOwned(ctx)
}

// recordOwned records that the rows of the table belong to the job. It is needed because earlier versions did not record this. With this
// record, a job whose configuration is changed and changed back needs no acceptance.
func (r *run) recordOwned(ctx context.Context) error {
	was, ok := parseBasis(r.recorded)
	if r.adoption != "" || r.cfg.Adopt.Differ == nil || ok && !was.owned(r.basis().mapping) {
		return nil
	}
	return r.recordAdoption(ctx, adoptAdopted)
}

// stillWaits reports whether rows still wait for an acceptance. If they do, it passes their number to OnUnaccepted.
func (r *run) stillWaits() bool {
	w, ok := ParseWaits(r.adoption)
	if ok {
		r.waits(w)
	}
	return ok
}

// readOn records the present basis after a source was read, if the source has read everything.
func (r *run) readOn(ctx context.Context, source Source, stage Stage) error {
	passed, ok := passOf(source, stage)
	if !ok || !passed.Everything || passed.Missed != nil || r.cfg.Inputs.Guarantee == row.ByPass && r.cfg.Adopt.Differ == nil {
		return nil //nolint:nilerr // Missed is no error of this run: the pass is still owed, and the next pass makes up for it
	}
	left := stage.changeLimit.leftAlone()
	if err := r.recordLeft(ctx, left); err != nil {
		return err
	}
	now := r.basis()
	if left != (Unaccepted{}) {
		now.waits = string(r.cfg.Adopt.Mode)
	}
	return r.recordBasis(ctx, now)
}

// recordBasis stores the basis b next to the job's position, unless b is already stored there.
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

// recordText replaces a record next to the job's position, if the run's fence is still valid. The arguments from and to are the old and the
// new text of the record.
func (r *run) recordText(ctx context.Context, name, from, to string) error {
	if err := r.connect(ctx); err != nil {
		return err
	}
	defer r.disconnect()
	b := Batch{ID: name, Shard: name, Part: -1, Move: &Move{From: from, To: to}}
	_, err := retry(ctx, r.cfg.Retry, func() (Outcome, error) { return r.cfg.Sink.Apply(ctx, r.fence, r.m.Plan(), b) })
	if err != nil {
		return fmt.Errorf("store the mapping with which table %q was written: %w", r.cfg.Mapping.Table, err)
	}
	return nil
}
