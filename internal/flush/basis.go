package flush

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"baton/internal/flush/mapping"
)

// Changed is the reason why everything is read again.
type Changed int

// The reasons.
const (
	OtherMapping Changed = iota + 1 // the job makes other rows of its data than those that are in the table
	OtherTable                      // the table is another one of its name, or was truncated
)

// A basis is what all rows of a job in its table depend on. It is recorded beside the place of the job, under this
// name, once everything was read on it: so a crash in between leads to one more pass, never to one too few.
// It belongs to the job, not to its place: a pattern that is changed, and changed back, has its old place again.
const (
	basisName    = "basis"
	basisVersion = "v1"
)

type basis struct {
	mapping string // the digest of the mapping
	table   string // see row.Table.Identity
}

func (b basis) String() string {
	return strings.TrimSpace(basisVersion + " " + b.mapping + " " + b.table)
}

// parseBasis reads what String wrote; not ok: nothing or something else is recorded.
func parseBasis(text string) (b basis, ok bool) {
	words := strings.Fields(text)
	if len(words) < 2 || words[0] != basisVersion {
		return b, false
	}
	b.mapping = words[1]
	if len(words) > 2 {
		b.table = words[2]
	}
	return b, true
}

// digest stands for the mapping as it was resolved: what the rows are made of, how, and which rows may be deleted.
// A setting that is not in it may change without a pass; a new one at its default must leave it out.
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

// basis is the present one.
func (r *run) basis() basis {
	return basis{mapping: r.digest(r.m), table: r.m.Plan().Table.Identity}
}

// compareBasis tells the source to read everything again where its rows were made on another basis. A job with a place and
// without a basis is of an earlier version: its rows are taken to be made on the present one.
func (r *run) compareBasis(ctx context.Context, source KeySweeper, position, recorded string) error {
	r.recorded = recorded
	if position == "" {
		return nil // the job is new, and reads everything anyhow
	}
	now := r.basis()
	was, ok := parseBasis(recorded)
	switch {
	case !ok:
		r.note(source.Name() + ": the place of the job has no digest of its mapping: the present one is taken, without a pass")
		return r.recordBasis(ctx)
	case was.mapping != now.mapping:
		source.Reread(OtherMapping, "the mapping of the job was changed")
	case was.table != now.table && was.table != "" && now.table != "":
		source.Reread(OtherTable, fmt.Sprintf("table %q was made again, truncated or restored", r.cfg.Mapping.Table))
	case was != now: // the database can tell now, or cannot any more
		return r.recordBasis(ctx)
	}
	return nil
}

// readOn records the basis on which a source was read, if everything was read.
func (r *run) readOn(ctx context.Context, source Source, stage Stage) error {
	reread, ok := source.(KeySweeper)
	if !ok {
		return nil
	}
	passed := reread.Passed(stage)
	if passed.Everything && passed.Missed == nil {
		return r.recordBasis(ctx)
	}
	return nil // the next pass owes it still
}

// recordBasis records the present basis, under the fence.
func (r *run) recordBasis(ctx context.Context) error {
	text := r.basis().String()
	if text == r.recorded {
		return nil
	}
	if err := r.connect(ctx); err != nil {
		return err
	}
	defer r.disconnect()
	b := Batch{ID: basisName, Shard: basisName, Part: -1, Move: &Move{From: r.recorded, To: text}}
	_, err := retry(ctx, r.cfg.Retry, func() (Outcome, error) { return r.cfg.Sink.Apply(ctx, r.fence, r.m.Plan(), b) })
	if err != nil {
		return fmt.Errorf("record on which mapping the rows of table %q are: %w", r.cfg.Mapping.Table, err)
	}
	r.recorded = text
	return nil
}
