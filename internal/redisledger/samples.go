package redisledger

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"baton/internal/redisconn"

	"github.com/gomodule/redigo/redis"
)

// The stream {K}:samples has for a while how far the flushes under a lock were behind,
// for whoever draws it. An entry has
//   - epoch and node, the term that it was measured in;
//   - levels, a line for each flush: its job, and unless nothing waits the lag in
//     milliseconds and the backlog: "users 1500 77".
//
// Who adds an entry does not prove that it leads. A deposed leader's can do no harm: what
// it says was counted in Redis, and is as true as its successor's; nothing is decided by
// it; and a reader leaves out what has a lower epoch than an entry before it.
const (
	// SampleEvery is how often a leader adds an entry.
	SampleEvery = 15 * time.Second
	// keepSamples makes about an hour of them.
	keepSamples = 240
	// samplesAge is how long they are kept after the last one.
	samplesAge = 2 * time.Hour
	// readSamples bounds one answer, if more are there than should be.
	readSamples = 2 * keepSamples
)

// Sample is how far the flushes under a lock were behind.
type Sample struct {
	At     time.Time // by Redis' clock
	ID     string    // its place in the stream
	NodeID string
	Epoch  int64
	Levels map[string]Level // by job
}

// Level is how far one flush was behind.
type Level struct {
	Lag     time.Duration
	Backlog int64
}

// AddSample adds an entry; s.At and s.ID are Redis' to choose.
func (l *Ledger) AddSample(ctx context.Context, s Sample) error {
	key := l.keys.Samples()
	_, err := l.store.Run(ctx, l.keys.Lock(), func(c redis.Conn) (any, error) {
		err := redisconn.SendAll(c,
			redisconn.Cmd("XADD", key, "MAXLEN", "~", keepSamples, "*", "epoch", s.Epoch, "node", s.NodeID, "levels",
				encodeLevels(s.Levels)),
			redisconn.Cmd("PEXPIRE", key, samplesAge.Milliseconds()))
		if err != nil {
			return nil, err
		}
		return nil, redisconn.AllDone(ctx, c)
	})
	if err != nil {
		return fmt.Errorf("keep a sample in %q: %w", key, err)
	}
	return nil
}

// Samples returns the entries after the one with that id, the oldest first; "" is before
// the first. Entries that cannot be read, of other versions or programs, are left out, and
// so are those of a term that was over. next is the id of the last entry, readable or not,
// and epoch the highest so far: to go on from.
func (l *Ledger) Samples(ctx context.Context, after string, epoch int64) (samples []Sample, next string, highest int64, err error) {
	from := "-"
	if after != "" {
		from = "(" + after
	}
	entries, err := redis.Values(l.store.Run(ctx, l.keys.Lock(), func(c redis.Conn) (any, error) {
		return redis.DoContext(c, ctx, "XREVRANGE", l.keys.Samples(), "+", from, "COUNT", readSamples)
	}))
	if err != nil {
		return nil, after, epoch, fmt.Errorf("read the samples in %q: %w", l.keys.Samples(), err)
	}
	next = after
	for _, entry := range slices.Backward(entries) {
		s, ok := decodeSample(entry)
		if s.ID != "" {
			next = s.ID
		}
		if ok && s.Epoch >= epoch {
			epoch = s.Epoch
			samples = append(samples, s)
		}
	}
	return samples, next, epoch, nil
}

// decodeSample reads an entry of the stream; ok is false if it is of no kind that is known.
func decodeSample(entry any) (s Sample, ok bool) {
	var fields map[string]string
	var err error
	if s.ID, fields, err = redisconn.StreamEntry(entry); err != nil {
		return s, false
	}
	ms, _, _ := strings.Cut(s.ID, "-")
	s.At, s.NodeID = millisField(ms), fields["node"]
	if s.Epoch, err = strconv.ParseInt(fields["epoch"], 10, 64); err != nil || s.Epoch >= maxEpoch {
		return s, false
	}
	s.Levels, ok = decodeLevels(fields["levels"])
	return s, ok
}

// maxEpoch is beyond every epoch: scripts could not count there.
const maxEpoch = 1 << 53

func encodeLevels(levels map[string]Level) string {
	names := make([]string, 0, len(levels))
	for name := range levels {
		names = append(names, name)
	}
	slices.Sort(names)
	var text []byte
	for _, name := range names {
		text = append(text, name...)
		if v := levels[name]; v != (Level{}) {
			text = append(text, ' ')
			text = strconv.AppendInt(text, v.Lag.Milliseconds(), 10)
			text = append(text, ' ')
			text = strconv.AppendInt(text, v.Backlog, 10)
		}
		text = append(text, '\n')
	}
	return string(text)
}

func decodeLevels(text string) (map[string]Level, bool) {
	levels := make(map[string]Level, strings.Count(text, "\n"))
	for line := range strings.Lines(text) {
		name, numbers, behind := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if name == "" {
			return nil, false
		}
		var v Level
		if behind {
			lag, backlog, _ := strings.Cut(numbers, " ")
			ms, err := strconv.ParseInt(lag, 10, 64)
			if err != nil || ms < 0 || ms > int64(math.MaxInt64/time.Millisecond) {
				return nil, false
			}
			if v.Backlog, err = strconv.ParseInt(backlog, 10, 64); err != nil || v.Backlog < 0 {
				return nil, false
			}
			v.Lag = time.Duration(ms) * time.Millisecond
		}
		levels[name] = v
	}
	return levels, len(levels) > 0
}
