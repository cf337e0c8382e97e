package flush

import (
	"errors"

	"baton/internal/flush/mapping"
)

// What tests have to know of the inside.
const (
	VerifyEvery = verifyEvery
	TotalsBytes = totalsBytes
)

// What tests call of the inside.
var (
	ReadTotal = readTotal
	Subtract  = subtract
)

// Totals is the source of differences that a run makes of one of totals.
type Totals = totals

// TotalsOf makes one as a run does.
func TotalsOf(p *Pipeline, m *mapping.Mapping, source Source) *Totals {
	r := &run{Pipeline: p, m: m}
	return r.totals(source).(*totals)
}

// Underway counts the marks that are not known to be committed.
func (t *totals) Underway() int { return len(t.underway) }

// CompileSweep matches a sweep with the table, and tells its plan.
func (p *Pipeline) CompileSweep(m *mapping.Mapping, sources []Source) (*mapping.Vanished, error) {
	v, err := p.compileSweep(m, sources)
	if v == nil {
		return nil, err
	}
	return v.Vanished, err
}

// PipelineOf is a pipeline that has seen its table.
func PipelineOf(sources ...Source) *Pipeline {
	p := &Pipeline{woken: make(chan struct{}, 1)}
	p.compiled.Store(&compiled{sources: sources})
	return p
}

// Taken is the fence that the next run need not take.
func (p *Pipeline) Taken() Fence { return p.taken }

// OfASource tells the failure of one shard.
func OfASource(err error) bool { return errors.As(err, new(sourceError)) }

// Unverify has the next run read the catalogue, however short ago it was read.
func (p *Pipeline) Unverify() { p.verified = p.verified.Add(-VerifyEvery) }
