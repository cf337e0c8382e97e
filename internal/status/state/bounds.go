package state

import (
	"context"
	"maps"
	"math"
	"slices"
	"time"

	"baton/internal/diagnose"
	"baton/internal/operate"
)

// Bounded returns a Node that cuts the answers of n to limits, because any client of Redis may have written them.
func Bounded(n operate.Node) operate.Node { return boundedNode{n} }

// boundedNode cuts the answers of another Node to limits.
type boundedNode struct{ operate.Node }

func (b boundedNode) History(ctx context.Context, job, before string, n int) ([]operate.Entry, error) {
	entries, err := b.Node.History(ctx, job, before, n)
	return operate.Bounded(entries), err
}

func (b boundedNode) Samples(ctx context.Context, since time.Time) ([]operate.Sample, error) {
	samples, err := b.Node.Samples(ctx, since)
	return slices.DeleteFunc(samples, func(s operate.Sample) bool {
		if !operate.Writable(s.At) {
			return true
		}
		for name, level := range s.Jobs {
			rate := 0.0
			if level.RowsPerSecond != nil {
				rate = *level.RowsPerSecond
			}
			if len(name) > operate.MostName || !finite(level.LagSeconds) || !finite(rate) {
				return true
			}
		}
		return false
	}), err
}

func finite(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }

func (b boundedNode) Recent(ctx context.Context) (map[string][]operate.Brief, error) {
	all, err := b.Node.Recent(ctx)
	return eachBounded(all), err
}

func (b boundedNode) Events(ctx context.Context, n int) ([]diagnose.Event, error) {
	events, err := b.Node.Events(ctx, n)
	return operate.Bounded(events), err
}

func (b boundedNode) LockEvents(ctx context.Context, n int) (map[string][]diagnose.Event, error) {
	all, err := b.Node.LockEvents(ctx, n)
	return eachBounded(all), err
}

// eachBounded returns a copy of a map, with values that are cut to limits. It does not change the given map, because another page may be
// reading it. For nil it returns nil.
func eachBounded[T any](all map[string]T) map[string]T {
	bounded := maps.Clone(all)
	for name, one := range bounded {
		bounded[name] = operate.Bounded(one)
	}
	return bounded
}

func (b boundedNode) Run(ctx context.Context, job, runID string) (operate.JobRun, error) {
	run, err := b.Node.Run(ctx, job, runID)
	return operate.Bounded(run), err
}

func (b boundedNode) Explain(ctx context.Context, node string) (operate.Explanation, error) {
	x, err := b.Node.Explain(ctx, node)
	return operate.Bounded(x), err
}

func (b boundedNode) Acceptance(ctx context.Context, job string) (operate.Acceptance, error) {
	a, err := b.Node.Acceptance(ctx, job)
	return operate.Bounded(a), err
}
