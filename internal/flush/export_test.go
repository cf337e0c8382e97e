package flush

import (
	"errors"

	"baton/internal/flush/mapping"
)

// These are internals that tests must know.
const (
	VerifyEvery = verifyEvery
	TotalsBytes = totalsBytes
)

// These are internals that tests call.
var (
	ReadTotal = readTotal
	Subtract  = subtract
)

// Totals is the source of differences that a run makes from a source of totals.
type Totals = totals

// TotalsOf returns such a source, as a run makes it.
func TotalsOf(p *Pipeline, m *mapping.Mapping, source Source) *Totals {
	r := &run{Pipeline: p, m: m}
	return r.totals(source).(*totals)
}

// Underway counts the marks that may not be committed yet.
func (t *totals) Underway() int { return len(t.underway) }

// CompileSweep matches a sweep with the table, and returns its plan.
func (p *Pipeline) CompileSweep(m *mapping.Mapping, sources []Source) (*mapping.Vanished, error) {
	v, err := p.compileSweep(m, sources)
	if v == nil {
		return nil, err
	}
	return v.Vanished, err
}

// PipelineOf returns a pipeline that has compiled its table.
func PipelineOf(sources ...Source) *Pipeline {
	p := &Pipeline{woken: make(chan struct{}, 1)}
	p.compiled.Store(&compiled{sources: sources})
	return p
}

// Taken returns the fence that the next run need not take.
func (p *Pipeline) Taken() Fence { return p.taken }

// OfASource reports whether an error is a failure of one shard.
func OfASource(err error) bool { return errors.As(err, new(sourceError)) }

// Unverify makes the next run read the catalogue, even if it was read a short time ago.
func (p *Pipeline) Unverify() { p.verified = p.verified.Add(-VerifyEvery) }
