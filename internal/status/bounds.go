package status

import (
	"context"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"baton/internal/operate"
	"baton/internal/text"
)

// What stands in Redis may be anybody's: a text of megabytes, or a time so far away that it
// cannot be written down, would take page, API and memory with it. So all that a node has
// read is bounded once, before anybody sees it.
const (
	// mostName is how long a name may be, mostProse a text for people, in bytes. Both are
	// far more than baton ever writes.
	mostName  = 512
	mostProse = 16 << 10
	// mostListed are nodes, events, and runs of one job that go on.
	mostListed = 1000
)

// prose are the fields that hold a text for people.
var prose = [...]string{"Error", "Output", "Reason", "Vacancy", "Waiting", "Aside", "Schedule", "ScheduleWords", "Target", "By", "Do", "What"}

// Bounded returns a state with all that it holds bounded: see bounded.
func Bounded(s Snapshot) Snapshot { return bounded(s) }

// bounded returns v with all that it holds bounded. What is right stays untouched, and is
// not copied: others may read it.
func bounded[T any](v T) T {
	bound(reflect.ValueOf(&v).Elem(), mostName)
	return v
}

func bound(v reflect.Value, most int) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			bound(v.Elem(), most)
		}
	case reflect.Slice:
		if v.Len() > mostListed && v.Type() != reflect.TypeFor[[]Job]() { // jobs are the configuration's
			v.Set(v.Slice(0, mostListed))
		}
		for i := range v.Len() {
			bound(v.Index(i), most)
		}
	case reflect.Struct:
		if at, ok := reflect.TypeAssert[*time.Time](v.Addr()); ok {
			if !at.IsZero() && !writable(*at) {
				*at = time.Time{}
			}
			return
		}
		for i := range v.NumField() {
			longest := mostName
			if slices.Contains(prose[:], v.Type().Field(i).Name) {
				longest = mostProse
			}
			bound(v.Field(i), longest)
		}
	case reflect.String:
		if v.Len() > most {
			v.SetString(text.Clip(strings.ToValidUTF8(v.String()[:most+1], "\uFFFD"), most))
		}
	case reflect.Float64:
		if f := v.Float(); math.IsNaN(f) || math.IsInf(f, 0) {
			v.SetFloat(0)
		}
	}
}

// writable reports whether a time can be written down: RFC 3339 ends with the year 9999.
func writable(at time.Time) bool {
	const first, last = 1970, 9000
	return at.UTC().Year() >= first && at.UTC().Year() <= last
}

// boundedDesk answers as another one does, within bounds.
type boundedDesk struct{ operate.Desk }

func (d boundedDesk) History(ctx context.Context, job, before string, n int) ([]operate.Entry, error) {
	entries, err := d.Desk.History(ctx, job, before, n)
	return bounded(entries), err
}

func (d boundedDesk) Samples(ctx context.Context, since time.Time) ([]operate.Sample, error) {
	samples, err := d.Desk.Samples(ctx, since)
	return slices.DeleteFunc(samples, func(s operate.Sample) bool {
		if !writable(s.At) {
			return true
		}
		for name, level := range s.Jobs {
			if len(name) > mostName || math.IsNaN(level.LagSeconds) || math.IsInf(level.LagSeconds, 0) {
				return true
			}
		}
		return false
	}), err
}

// boundedInquiry likewise.
type boundedInquiry struct{ operate.Inquiry }

func (q boundedInquiry) Events(ctx context.Context, n int) ([]Event, error) {
	events, err := q.Inquiry.Events(ctx, n)
	return bounded(events), err
}

func (q boundedInquiry) Run(ctx context.Context, job, runID string) (operate.JobRun, error) {
	run, err := q.Inquiry.Run(ctx, job, runID)
	return bounded(run), err
}

func (q boundedInquiry) Explain(ctx context.Context, node string) (operate.Explanation, error) {
	x, err := q.Inquiry.Explain(ctx, node)
	return bounded(x), err
}
