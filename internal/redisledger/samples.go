package redisledger

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"baton/internal/redisconn"

	"github.com/gomodule/redigo/redis"
)

// The stream {K}:samples has the recent lag of the flushes under a lock, for plots. An entry has
//   - epoch and node, the term in which it was measured;
//   - levels, a line for each flush: its job and, if changes wait, the lag in milliseconds and the backlog: "users 1500 77";
//   - span, the milliseconds since the leader's previous entry, and rows, a line for each flush that has
//     written rows since then: "users 5000"; both are missing in the first entry of a term.
//
// A leader writes an entry without a check that it still leads. An entry of a deposed leader does no harm: its figures were measured in
// Redis, and no decision depends on them. Readers skip an entry if an earlier entry has a higher epoch.
const (
	// SampleEvery is the time between two entries of a leader.
	SampleEvery = 15 * time.Second
	// keepSamples is the number of entries to keep: about an hour.
	keepSamples = 240
	// samplesAge is the time after the last entry when the stream expires.
	samplesAge = 2 * time.Hour
	// readSamples is the maximum size of one reply.
	readSamples = 2 * keepSamples
)

// Sample is the lag of the flushes under a lock at one moment.
type Sample struct {
	At     time.Time // by Redis' clock
	ID     string    // its place in the stream
	NodeID string
	Epoch  int64
	Span   time.Duration    // the time since the leader's previous sample; 0: unknown
	Levels map[string]Level // by job
}

// Level is the lag of one flush, and the number of rows that it has written.
type Level struct {
	Lag     time.Duration
	Backlog int64
	Rows    int64 // the rows written since the previous sample
}

// AddSample adds an entry. Redis chooses s.At and s.ID.
func (l *Ledger) AddSample(ctx context.Context, s Sample) error {
	key := l.keys.Samples()
	_, err := l.store.Run(ctx, l.keys.Lock(), func(c redis.Conn) (any, error) {
		fields := redis.Args{key, "MAXLEN", "~", keepSamples, "*", "epoch", s.Epoch, "node", s.NodeID, "levels", encodeLevels(s.Levels)}
		if s.Span > 0 {
			fields = fields.Add("span", s.Span.Milliseconds(), "rows", encodeRows(s.Levels))
		}
		err := redisconn.SendAll(c,
			redisconn.Cmd("XADD", fields...),
			redisconn.Cmd("PEXPIRE", key, samplesAge.Milliseconds()))
		if err != nil {
			return nil, err
		}
		return nil, redisconn.AllDone(ctx, c)
	})
	if err != nil {
		return fmt.Errorf("store a sample in %q: %w", key, err)
	}
	return nil
}

// Samples returns the entries after the entry with the id in the argument after, the oldest first. If this argument is "", Samples begins
// with the first entry. It skips entries that it cannot read (of other versions or programs), and entries of a term that was over. The
// result next is the id of the last entry, readable or not. The result highest is the highest epoch so far. The caller passes both results
// to the next call.
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

// latestOf is the number of newest samples that LatestLevels reads. One sample is not enough, because it may come from a deposed
// leader.
const latestOf = 4

// LatestLevels returns the levels of the leader's newest sample. It returns none if that sample is older than the duration within, measured
// by Redis' clock.
func (l *Ledger) LatestLevels(ctx context.Context, within time.Duration) (map[string]Level, error) {
	replies, err := redis.Values(l.store.Run(ctx, l.keys.Lock(), func(c redis.Conn) (any, error) {
		err := redisconn.SendAll(c, redisconn.Cmd("TIME"), redisconn.Cmd("XREVRANGE", l.keys.Samples(), "+", "-", "COUNT", latestOf))
		if err != nil {
			return nil, err
		}
		return redisconn.ReceiveAll(ctx, c)
	}))
	if err != nil {
		return nil, fmt.Errorf("read the newest sample in %q: %w", l.keys.Samples(), err)
	}
	now, err := redisconn.Time(replies[0])
	if err != nil {
		return nil, err
	}
	entries, err := redis.Values(replies[1], nil)
	if err != nil {
		return nil, fmt.Errorf("read the newest sample in %q: %w", l.keys.Samples(), redisconn.Explain(err))
	}
	var newest Sample
	for _, entry := range entries {
		if s, ok := decodeSample(entry); ok && s.Epoch > newest.Epoch {
			newest = s
		}
	}
	if now.Sub(newest.At) > within {
		return nil, nil
	}
	return newest.Levels, nil
}

// decodeSample decodes an entry of the stream. The result ok is false if the kind of the entry is unknown.
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
	if s.Levels, ok = decodeLevels(fields["levels"]); !ok {
		return s, false
	}
	if ms := intField(fields["span"]); ms > 0 && ms < time.Hour.Milliseconds() {
		s.Span = time.Duration(ms) * time.Millisecond
		addRows(s.Levels, fields["rows"])
	}
	return s, true
}

// maxEpoch is larger than every valid epoch. Epochs have this limit because Lua's numbers are exact only up to 2^53.
const maxEpoch = 1 << 53

func encodeRows(levels map[string]Level) string {
	var text []byte
	for _, name := range slices.Sorted(maps.Keys(levels)) {
		if n := levels[name].Rows; n > 0 {
			text = fmt.Appendf(text, "%s %d\n", name, n)
		}
	}
	return string(text)
}

// addRows adds the numbers of rows in a sample to its levels. It leaves out unreadable numbers.
func addRows(levels map[string]Level, text string) {
	for line := range strings.Lines(text) {
		name, number, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		n, err := strconv.ParseInt(number, 10, 64)
		if v, ok := levels[name]; ok && err == nil && n > 0 {
			v.Rows = n
			levels[name] = v
		}
	}
}

func encodeLevels(levels map[string]Level) string {
	var text []byte
	for _, name := range slices.Sorted(maps.Keys(levels)) {
		text = append(text, name...)
		if v := levels[name]; v.Lag != 0 || v.Backlog != 0 {
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
