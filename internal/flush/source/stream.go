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
	// Inputs are the parts of a record: fields of the entries, and "$id". "$id" wins over a field of that name.
	Inputs []string
	// PageRows and BatchBytes are the aim for the entries of a page, that is of a transaction,
	// and for their bytes. Default 5000, and 8 MiB.
	PageRows, BatchBytes int
	// OnGap is the reaction to a gap, entries that are gone unread: "stop" with flush.ErrGap, or "continue" after the gap. Default stop.
	OnGap string
	// Start is the place of the very first reading: "beginning", "end", or an id, after which it begins. Default beginning.
	Start string
	// Retain is how long flushed entries stay, by the time in their id. nil: baton trims nothing.
	Retain *time.Duration
}

// Stream reads one stream, the oldest entry first: a flush.Source whose position is in the database and moves in the transaction of the
// rows. Only Retain removes entries from the stream. Nothing is acknowledged, and consumer groups of others are left alone. An entry that
// was deleted before it was read is not read.
//
// Beside the stream there is a hash, {key}:baton:positions, with the position of every job. It is a copy for others: nodes that do not
// ask the database read the backlog from it, and a job that trims learns which entries others have not read. It may be behind the
// database, never ahead. Entries that a removed job has not read are not trimmed until HDEL {key}:baton:positions JOB.
type Stream struct {
	staging.Key
	inputs   []string
	pageRows int
	bytes    int  // of a page
	carryOn  bool // after a gap
	start    string
	startID  place.ID // where start is an id
	retain   *time.Duration

	mu        sync.Mutex
	staged    streamStage
	committed *place.Place // the last place known to be in the database; nil for unknown
}

// streamStage is the result of Stage for Read.
type streamStage struct {
	id       string // of the stage
	position string // from the database
	from     place.Place
	anchor   bool        // the entry at from is there
	behind   place.ID    // the first one to read; zero if only the position moves
	until    place.Place // the last one to read, and its number
	// first and anchorSize are the bytes of the stream's first entry, and of that at from.
	first, anchorSize int
}

// The choices of OnGap and Start. An id is a Start, too.
const (
	gapStop, gapContinue     = "stop", "continue"
	startBeginning, startEnd = "beginning", "end"
)

// NewStream checks the options; it does not connect.
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
		return nil, fmt.Errorf("on_gap: %q is unknown: it is %s or %s", o.OnGap, gapStop, gapContinue)
	}
	if s.start != startBeginning && s.start != startEnd {
		if s.startID, err = place.ParseID(s.start); err != nil {
			return nil, fmt.Errorf("start: it is %s, %s or an id, and %w", startBeginning, startEnd, err)
		}
	}
	if o.Retain != nil && *o.Retain < 0 {
		return nil, fmt.Errorf("retain: %s is less than nothing", *o.Retain)
	}
	return s, nil
}

func (s *Stream) positions() string { return redisconn.SlotPrefix(s.Live) + ":baton:positions" }

// Stage checks whether it can continue from the position, and whether there is anything to read.
// flush.ErrGap if unread entries are gone and on_gap is stop.
func (s *Stream) Stage(ctx context.Context, newID, position string) (st flush.Stage, ok bool, err error) {
	s.remember(streamStage{}, nil)
	r, l, note, err := s.find(ctx, position)
	if err != nil {
		return st, false, err
	}
	r.id = newID
	s.remember(r, &r.from)
	// A change of the position is work, too: after a gap, and to the end of the stream as it was when the job began.
	moves := r.from.String() != position && (position != "" || s.start == startEnd)
	if r.behind == (place.ID{}) && !moves {
		if position != "" && s.retain != nil { // entries grow old even if no producer adds any
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

// begin returns the place where the very first reading begins. It registers the place before it reads: other jobs do not trim entries
// after a registered place.
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

// resume returns the place to continue at.
func (s *Stream) resume(ctx context.Context, position string) (at place.Place, l place.Look, note string, err error) {
	if at, err = place.Parse(position); err != nil {
		return at, l, "", fmt.Errorf("job %q, stream %q: %w, so somebody has written it by hand: delete the row from baton_position to "+
			"begin anew at `start`", s.Job, s.Live, err)
	}
	if l, err = s.look(ctx, at.ID.String(), position); err != nil {
		return at, l, "", err
	}
	missing, next := l.Gap(at)
	switch {
	case missing == "" && l.Behind == place.ID{}:
		return at, l, "", nil // the position stays as it is written
	case missing == "":
		return l.Number(at), l, "", nil
	case !s.carryOn:
		return at, l, "", s.gapError(at, missing)
	}
	if next.ID != at.ID { // look from there
		if l, err = s.look(ctx, next.ID.String(), ""); err != nil {
			return at, l, "", err
		}
	}
	if l.Behind == (place.ID{}) { // no page will move the position out of the gap
		next = l.End()
	}
	return l.Number(next), l, fmt.Sprintf("went on behind a gap, because of `on_gap: continue`. Entry %s was the position: %s", at.ID,
		missing), nil
}

// Done notes that the database has the page's end as its position.
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
