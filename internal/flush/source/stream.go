package source

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"baton/internal/flush"
	"baton/internal/flush/row"
	"baton/internal/flush/source/paging"
	"baton/internal/flush/source/place"
	"baton/internal/flush/source/spec"
	"baton/internal/flush/source/staging"
	"baton/internal/redisconn"
)

// StreamOptions describe one stream that producers add to with XADD.
type StreamOptions struct {
	Job string
	Key string
	// Inputs are fields of the entries, and "$id". If an entry has a field "$id", the input is still the entry's id.
	Inputs []string
	// PageRows and BatchBytes are the desired entries and bytes of a page, which is one transaction. Default 5000, and 8 MiB.
	PageRows, BatchBytes int
	// OnGap decides what happens if unread entries are gone: "stop" with flush.ErrGap, or "continue" after the gap. Default: "stop".
	OnGap string
	// Start is where the very first reading begins: "beginning", "end", or after an id. Default: "beginning".
	Start string
	// Retain is how long flushed entries stay, counted from the time in their id. nil means that baton trims nothing.
	Retain *time.Duration
}

// Stream reads one stream, the oldest entry first. It is a flush.Source. The job's position in the stream is in the database, and moves in
// the transaction that writes the rows. Only Retain removes entries from the stream. Stream acknowledges nothing, and does not touch
// consumer groups of other programs. If an entry was deleted before it was read, it is not flushed.
//
// Next to the stream there is a hash, {key}:baton:positions, with the position of every job. These positions are copies of the positions in
// the database. Nodes that do not query the database compute the backlog from the copies. A job that trims finds out from the copies which
// entries other jobs have not read. A copy may be behind the position in the database, but never ahead of it. If a job was removed and has
// not read all entries, its unread entries are trimmed only after HDEL {key}:baton:positions JOB.
type Stream struct {
	staging.Key
	inputs   []string
	pageRows int
	bytes    int  // the desired bytes of a page
	carryOn  bool // whether to continue after a gap
	start    string
	startID  place.ID // the id in the setting start, if start is an id
	retain   *time.Duration

	mu        sync.Mutex
	staged    streamStage
	committed *place.Place // the last position that is known to be in the database; nil: unknown
}

// streamStage contains what Stage has found out about the stream. Read uses it.
type streamStage struct {
	id       string // the id of the stage
	position string // as the database has it
	from     place.Place
	anchor   bool        // whether the entry at the place in from exists
	behind   place.ID    // the first entry to read; zero if only the position moves
	until    place.Place // the last entry to read, and its number
	// first and anchorSize are the bytes of the stream's first entry, and of the entry at the place in from.
	first, anchorSize int
}

// These are the values of OnGap and Start. Start may also be an id.
const (
	gapStop, gapContinue     = "stop", "continue"
	startBeginning, startEnd = "beginning", "end"
)

// NewStream checks the options and does not connect.
func NewStream(store *redisconn.Store, o StreamOptions) (*Stream, error) {
	key, err := staging.New(store, o.Job, o.Key, "stream")
	if err != nil {
		return nil, err
	}
	s := &Stream{
		Key: key, inputs: o.Inputs, start: cmp.Or(o.Start, startBeginning), retain: o.Retain,
		pageRows: positive(o.PageRows, defaultPageRows),
		bytes:    paging.Bytes(o.BatchBytes, 1),
	}
	switch o.OnGap {
	case "", gapStop:
	case gapContinue:
		s.carryOn = true
	default:
		return nil, fmt.Errorf("on_gap: %q is unknown: use %s or %s", o.OnGap, gapStop, gapContinue)
	}
	if s.start != startBeginning && s.start != startEnd {
		if s.startID, err = place.ParseID(s.start); err != nil {
			return nil, fmt.Errorf("start: use %s, %s or an id: %w", startBeginning, startEnd, err)
		}
	}
	if o.Retain != nil && *o.Retain < 0 {
		return nil, fmt.Errorf("retain must not be negative, got %s", *o.Retain)
	}
	return s, nil
}

func (s *Stream) positions() string { return redisconn.SlotPrefix(s.Live) + ":baton:positions" }

// Stage checks whether the job can continue from its position, and whether there are entries to read. It returns flush.ErrGap if unread
// entries were removed and on_gap is "stop".
func (s *Stream) Stage(ctx context.Context, newID, position string) (st flush.Stage, ok bool, err error) {
	s.remember(streamStage{}, nil)
	r, l, note, err := s.find(ctx, position)
	if err != nil {
		return st, false, err
	}
	r.id = newID
	s.remember(r, &r.from)
	// A run must also move the position if there are no entries to read: after a gap, and in the first run of a job that starts at the end
	// of the stream.
	moves := r.from.String() != position && (position != "" || s.start == startEnd)
	if r.behind == (place.ID{}) && !moves {
		if position != "" && s.retain != nil { // entries become older than retain even if no producer adds new entries
			err = s.trim(ctx, r.from, r.first)
		}
		return st, false, err
	}
	return flush.Stage{ID: newID, Size: l.Pending(r.from), Note: note}, true, nil
}

func (s *Stream) remember(r streamStage, committed *place.Place) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.staged, s.committed = r, committed
}

// find returns the range of entries to read.
func (s *Stream) find(ctx context.Context, position string) (r streamStage, l place.Look, note string, err error) {
	r.position = position
	if position == "" {
		r.from, l, err = s.begin(ctx)
	} else {
		r.from, l, note, err = s.resume(ctx, position)
	}
	r.anchor, r.behind, r.until = l.Anchor, l.Behind, l.End()
	r.first, r.anchorSize = l.FirstSize, l.AnchorSize
	return r, l, note, err
}

// begin returns the place where a job without a position begins to read. It records the place before the job reads, so that other jobs do
// not trim the entries after that place.
func (s *Stream) begin(ctx context.Context) (at place.Place, l place.Look, err error) {
	note := place.Place{ID: s.startID}.String()
	if s.start == startEnd {
		note = ""
	}
	if l, err = s.look(ctx, s.startID.String(), note); err != nil {
		return at, l, err
	}
	if s.start == startEnd {
		at = l.End()
		l.Behind = place.ID{}
		return at, l, nil
	}
	return l.Number(place.Place{ID: s.startID}), l, nil
}

// resume returns the place where a job with a position continues to read.
func (s *Stream) resume(ctx context.Context, position string) (at place.Place, l place.Look, note string, err error) {
	if at, err = place.Parse(position); err != nil {
		return at, l, "", fmt.Errorf("job %q, stream %q: %w: baton did not write this position; to begin again at `start`, "+
			"delete the job's "+
			"row from baton_position", s.Job, s.Live, err)
	}
	if l, err = s.look(ctx, at.ID.String(), position); err != nil {
		return at, l, "", err
	}
	missing, next := l.Gap(at)
	switch {
	case missing == "" && l.Behind == place.ID{}:
		return at, l, "", nil // the position in the database stays unchanged
	case missing == "":
		return l.Number(at), l, "", nil
	case !s.carryOn:
		return at, l, "", s.gapError(at, missing)
	}
	if next.ID != at.ID { // continue after the gap
		if l, err = s.look(ctx, next.ID.String(), ""); err != nil {
			return at, l, "", err
		}
	}
	if l.Behind == (place.ID{}) { // there are no entries, so no page will move the position out of the gap
		next = l.End()
	}
	return l.Number(next), l, fmt.Sprintf("continued after a gap, because of `on_gap: continue`. Entry %s was the position: %s", at.ID,
		missing), nil
}

// Done remembers that the position in the database is now the end of the page.
func (s *Stream) Done(_ context.Context, _ flush.Stage, p flush.Page) error {
	if p.Move == nil {
		return nil
	}
	at, err := place.Parse(p.Move.To)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.committed = &at
	return nil
}

var streamSpec = Spec{
	Kind: spec.Named("stream"),
	inputs: func(Options) (row.Inputs, error) {
		return row.Inputs{Names: []string{row.InputID}, Fields: true, Guarantee: row.ByPosition}, nil
	},
	commands: func(o Options, _ string) []string {
		all := []string{"TYPE K", "XINFO STREAM K", "XRANGE K - +", "XREVRANGE K + -", "HGET P f", "EVAL s 2 K P", "EVALSHA s 2 K P",
			"MULTI", "EXEC"}
		if o.Retain != nil {
			all = append(all, "TIME", "HGETALL P", "HSET P f v", "XTRIM K MINID 1")
		}
		return all
	},
	waitCommands: []string{"XREAD STREAMS K 0"},
	open: func(s *redisconn.Store, key string, o Options, inputs []string) (flush.Source, error) {
		return NewStream(s, StreamOptions{
			Job: o.Job, Key: key, Inputs: inputs, PageRows: o.Rows, BatchBytes: paging.Bytes(o.Bytes, o.Lanes),
			OnGap: o.OnGap, Start: o.Start, Retain: o.Retain,
		})
	},
}
