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
	// sampleTimeout limits the time that Redis has for a sample, because the next sample makes up for a missing one.
	sampleTimeout = time.Second
	// samplesStale is the maximum age of the samples in memory. Older samples are read again.
	samplesStale = 2 * time.Second
	// samplesReread is the time without a new sample after which all samples are read from the beginning. The reason is that Redis may have
	// lost the samples and started again with lower ids.
	samplesReread = time.Minute
	// samplesKept is how long samples are kept in memory.
	samplesKept = time.Hour + time.Minute
)

// sampler adds new samples to the samples of a lock while this node leads. A sample says how far the tables are behind Redis at one moment.
type sampler struct {
	log    *zap.Logger
	ledger *redisledger.Ledger
	nodeID string
	epoch  int64
	last   time.Time
	failed bool             // the failure is already logged
	was    map[string]int64 // the rows that each job had written by the previous sample
}

// take adds a sample if a sample is due, or if the argument levels contains a job that is missing from the last sample. In the second case
// it does not wait, because other nodes show the backlog of a capture only from a sample. The numbers of rows in levels count all rows that
// were ever written. A failure is logged once, and does not stop the sampler.
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
		s.log.Debug("cannot store how far the flushes are behind: the plot on the page will have a gap", zap.Error(err))
	}
	s.failed = err != nil
}

// since returns the levels with other numbers of rows. These numbers count only the rows that were written since the previous sample.
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

// news reports whether the argument levels contains a job that the previous sample did not contain.
func (s *sampler) news(levels map[string]redisledger.Level) bool {
	for name := range levels {
		if _, had := s.was[name]; !had {
			return true
		}
	}
	return false
}

// due reports whether it is time for a sample. Its caller calls it at every interval of GaugeEvery.
func (s *sampler) due(now time.Time) bool {
	return now.Sub(s.last) > redisledger.SampleEvery-GaugeEvery/2
}

// Samples is a node's memory of the samples under one lock. A request for the samples fills this memory, and later requests use it.
type Samples struct {
	lockKey string
	ledger  *redisledger.Ledger
	turn    chan struct{} // held while the fields below are read or written

	samples []redisledger.Sample // the oldest first
	next    string
	epoch   int64
	read    time.Time // when Redis last answered
	renewed time.Time // when all samples were last read from the beginning, or a reading found new samples
}

// NewSamples returns a memory without samples, for the samples of one lock.
func NewSamples(lockKey string, ledger *redisledger.Ledger) *Samples {
	return &Samples{lockKey: lockKey, ledger: ledger, turn: make(chan struct{}, 1)}
}

// later returns the samples that were taken after the time in the argument since. If it returns an error, it also returns the samples that
// are in its memory.
func (b *Samples) later(ctx context.Context, since time.Time) ([]redisledger.Sample, error) {
	select {
	case b.turn <- struct{}{}: // even if no time is left, because samples in memory need no time
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
	if n := len(b.samples); n > 0 { // by Redis' clock, which has dated the samples
		oldest := b.samples[n-1].At.Add(-samplesKept)
		b.samples = slices.DeleteFunc(b.samples, func(s redisledger.Sample) bool { return s.At.Before(oldest) })
	}
	return nil
}

// Merged returns the samples of several locks, the oldest sample first. It leaves out the samples from before the time in the argument
// since. If the Redis of one lock fails, Merged still returns the samples of the other locks.
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
