package work

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"baton/internal/operate"
	"baton/internal/redisledger"
)

const (
	// sampleTimeout bounds Redis' time for a sample: the next one makes up for a missing one.
	sampleTimeout = time.Second
	// samplesStale is the age from which remembered samples are brought up to date.
	samplesStale = 2 * time.Second
	// samplesReread is when they are read from the beginning, if no new one has come: Redis may have lost them, and have started again
	// with earlier ids.
	samplesReread = time.Minute
	// samplesKept is how far back they are kept.
	samplesKept = time.Hour + time.Minute
)

// sampler adds to the samples of a lock while this node leads.
type sampler struct {
	log    *zap.Logger
	ledger *redisledger.Ledger
	nodeID string
	epoch  int64
	last   time.Time
	failed bool             // logged already
	was    map[string]int64 // rows that a job had written by the sample before
}

// take adds a sample if one is due, or if levels has a job that the last one did not have: other nodes show the backlog of a capture,
// which only the leader can count. The rows in levels count all that were ever written. A failure is logged once, and stops nothing.
func (s *sampler) take(ctx context.Context, levels map[string]redisledger.Level) {
	if len(levels) == 0 || !s.due(time.Now()) && !s.news(levels) {
		return
	}
	now := time.Now()
	sample := redisledger.Sample{NodeID: s.nodeID, Epoch: s.epoch, Levels: s.since(levels)}
	if !s.last.IsZero() {
		sample.Span = now.Sub(s.last)
	}
	s.last = now
	ctx, cancel := context.WithTimeout(ctx, sampleTimeout)
	defer cancel()
	err := s.ledger.AddSample(ctx, sample)
	if err != nil && !s.failed {
		s.log.Debug("the plot of the page has a gap: a sample of how far the flushes are behind was not kept", zap.Error(err))
	}
	s.failed = err != nil
}

// since are the levels with the rows written since the sample before.
func (s *sampler) since(levels map[string]redisledger.Level) map[string]redisledger.Level {
	was := s.was
	s.was = make(map[string]int64, len(levels))
	news := make(map[string]redisledger.Level, len(levels))
	for name, v := range levels {
		all := v.Rows
		v.Rows -= was[name]
		if v.Rows < 0 { // the job has been replaced
			v.Rows = all
		}
		news[name], s.was[name] = v, all
	}
	return news
}

// news reports whether there is a job that the sample before did not have.
func (s *sampler) news(levels map[string]redisledger.Level) bool {
	for name := range levels {
		if _, had := s.was[name]; !had {
			return true
		}
	}
	return false
}

// due reports whether a sample is due, for a caller that asks every GaugeEvery.
func (s *sampler) due(now time.Time) bool {
	return now.Sub(s.last) > redisledger.SampleEvery-GaugeEvery/2
}

// Samples is a node's memory of the samples under one lock. Requests fill it, and share it.
type Samples struct {
	lockKey string
	ledger  *redisledger.Ledger
	turn    chan struct{} // held while the fields below are read or written

	samples []redisledger.Sample // the oldest first
	next    string
	epoch   int64
	read    time.Time // when Redis last answered
	renewed time.Time // when it was last read from the beginning, or brought news
}

// NewSamples makes an empty memory of the lock's samples.
func NewSamples(lockKey string, ledger *redisledger.Ledger) *Samples {
	return &Samples{lockKey: lockKey, ledger: ledger, turn: make(chan struct{}, 1)}
}

// later returns the samples after a time. With an error it returns those that it remembers.
func (b *Samples) later(ctx context.Context, since time.Time) ([]redisledger.Sample, error) {
	select {
	case b.turn <- struct{}{}: // even without time left: remembered samples take none
	default:
		select {
		case b.turn <- struct{}{}:
		case <-ctx.Done():
			return nil, fmt.Errorf("read the samples: %w", context.Cause(ctx))
		}
	}
	defer func() { <-b.turn }()
	var err error
	if time.Since(b.read) > samplesStale {
		err = b.refresh(ctx)
	}
	from, _ := slices.BinarySearchFunc(b.samples, since, func(s redisledger.Sample, at time.Time) int {
		if s.At.After(at) {
			return 1
		}
		return -1
	})
	return slices.Clone(b.samples[from:]), err
}

func (b *Samples) refresh(ctx context.Context) error {
	samples, next, epoch, err := b.ledger.Samples(ctx, b.next, b.epoch)
	if err != nil {
		return err
	}
	now := time.Now()
	switch {
	case len(samples) > 0:
		b.samples = append(b.samples, samples...)
		b.renewed = now
	case now.Sub(b.renewed) > samplesReread:
		if samples, next, epoch, err = b.ledger.Samples(ctx, "", 0); err != nil {
			return err
		}
		b.samples, b.renewed = samples, now
	}
	b.next, b.epoch, b.read = next, epoch, now
	if n := len(b.samples); n > 0 { // by Redis' clock, which dated them
		oldest := b.samples[n-1].At.Add(-samplesKept)
		b.samples = slices.DeleteFunc(b.samples, func(s redisledger.Sample) bool { return s.At.Before(oldest) })
	}
	return nil
}

// Merged are the samples of several locks, the oldest first, later than since. The samples of one lock are returned also if another
// lock's Redis fails.
func Merged(ctx context.Context, since time.Time, of []*Samples) ([]operate.Sample, error) {
	var merged []operate.Sample
	var problems []error
	for _, b := range of {
		found, err := b.later(ctx, since)
		if err != nil {
			problems = append(problems, fmt.Errorf("lock %q: %w", b.lockKey, err))
		}
		for _, s := range found {
			merged = append(merged, operate.Sample{At: s.At, Jobs: levelsOf(s)})
		}
	}
	slices.SortStableFunc(merged, func(a, b operate.Sample) int { return a.At.Compare(b.At) })
	return merged, errors.Join(problems...)
}

func levelsOf(s redisledger.Sample) map[string]operate.Level {
	levels := make(map[string]operate.Level, len(s.Levels))
	for name, v := range s.Levels {
		level := operate.Level{LagSeconds: v.Lag.Seconds(), Backlog: v.Backlog}
		if s.Span > 0 {
			rate := float64(v.Rows) / s.Span.Seconds()
			level.RowsPerSecond = &rate
		}
		levels[name] = level
	}
	return levels
}
