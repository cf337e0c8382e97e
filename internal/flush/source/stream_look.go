package source

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/gomodule/redigo/redis"

	"baton/internal/flush"
	"baton/internal/flush/source/place"
	"baton/internal/redisconn"
)

var lookScript = loadScript("stream_look", 2)

// look looks at the stream from at, or from the noted position; without a noted position it notes note.
//
// Lua copies each entry a few times, which takes Redis milliseconds for a megabyte, and XINFO returns two entries. So look uses a
// transaction, and the script only where a transaction cannot answer: see briefly.
func (s *Stream) look(ctx context.Context, at, note string) (l place.Look, err error) {
	c, err := s.Store.Conn(ctx, s.Live)
	if err != nil {
		return l, err
	}
	defer c.Close() // it goes back to the pool
	l, ok, err := s.briefly(ctx, c, at)
	if ok && note != "" && l.Noted == "" { // other jobs do not trim entries after a noted place
		if _, err := s.note(ctx, note, "", 0); err != nil {
			return l, err
		}
		l, ok, err = s.briefly(ctx, c, at)
	}
	if ok || err != nil {
		return l, s.Fail("look at", err)
	}
	return s.lookByScript(ctx, at, note)
}

func (s *Stream) lookByScript(ctx context.Context, at, note string) (l place.Look, err error) {
	reply, err := redis.Values(s.Script(ctx, "look at", lookScript, s.Live, s.positions(), s.Job, at, note))
	if err != nil {
		return l, err
	}
	var kind, last, maxDeleted, first, anchor, behind string
	if _, err := redis.Scan(reply, &kind, &l.Length, &last, &l.Added, &maxDeleted, &first, &anchor, &behind, &l.Noted); err != nil {
		return l, s.Fail("look at", err)
	}
	if kind != "stream" && kind != "none" {
		return l, s.WrongType([]any{[]byte(s.Live), []byte(kind)})
	}
	l.Exists, l.Anchor = kind == "stream", anchor != ""
	for _, id := range []struct {
		text string
		into *place.ID
	}{{last, &l.Last}, {maxDeleted, &l.MaxDeleted}, {first, &l.First}, {behind, &l.Behind}} {
		if *id.into, err = place.ParseID(id.text); err != nil {
			return l, s.Fail("look at", err)
		}
	}
	return l, nil
}

// briefly looks at the stream from at without reading its entries. ok is false where only the script can tell: the key is of another type
// or being moved between two nodes of a Cluster, the user must not use transactions, the server only imitates Redis, or the noted place
// has just changed.
func (s *Stream) briefly(ctx context.Context, c redisconn.Conn, at string) (l place.Look, ok bool, err error) {
	ofNoted := at == ""
	if ofNoted {
		noted, err := redis.String(redis.DoContext(c, ctx, "HGET", s.positions(), s.Job))
		if err != nil && !errors.Is(err, redis.ErrNil) {
			return l, false, err
		}
		at = idOfNoted(noted)
	}
	commands := []redisconn.Command{
		redisconn.Cmd("MULTI"), redisconn.Cmd("HGET", s.positions(), s.Job), redisconn.Cmd("XINFO", "STREAM", s.Live),
		redisconn.Cmd("XRANGE", s.Live, at, "+", "COUNT", 2), redisconn.Cmd("EXEC"),
	}
	q := questionOf(commands...)
	q.Brief = func(int) bool { return true }
	q.Read = func(a *redisconn.Answers) error {
		replies, _ := a.Briefs[len(commands)-1].([]any)
		l, ok = place.LookOf(replies, at)
		ok = ok && (!ofNoted || idOfNoted(l.Noted) == at) // or the noted place has changed meanwhile
		return nil
	}
	err = c.Ask(ctx, q)
	return l, ok, err
}

// idOfNoted is the id of a noted place; the id before all entries if none is noted.
func idOfNoted(noted string) string {
	id, _, _ := strings.Cut(noted, " ")
	return cmp.Or(id, place.ID{}.String())
}

// gapError tells an operator how to decide about a gap.
func (s *Stream) gapError(at place.Place, missing string) error {
	return fmt.Errorf("%w: stream %q has no entry %s any more, which is the position of job %q: %s. "+
		"To go on behind the gap, set `on_gap: continue` for one run; to start again at `start`, delete the job's row for %q from "+
		"baton_position",
		flush.ErrGap, s.Live, at.ID, s.Job, missing, s.Live)
}
