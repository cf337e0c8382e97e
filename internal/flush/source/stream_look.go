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

// look looks at the stream from the id in the argument at, or from the recorded place if that id is "". If no place is recorded, look
// records the place in the argument note.
//
// look prefers a transaction to a script. XINFO returns two entries, and a script would copy each of them a few times, which takes Redis
// milliseconds for a megabyte. So look uses the script only if a transaction is not enough: see briefly.
func (s *Stream) look(ctx context.Context, at, note string) (l place.Look, err error) {
	c, err := s.Store.Conn(ctx, s.Live)
	if err != nil {
		return l, err
	}
	defer c.Close() // returns it to the pool
	l, ok, err := s.briefly(ctx, c, at)
	if ok && note != "" && l.Noted == "" { // other jobs do not trim entries after a recorded place
		if _, err := s.note(ctx, c, note, "", 0); err != nil {
			return l, s.Fail("look at", err)
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

// briefly looks at the stream from the id in the argument at, without reading entries. The result ok is false if only the script can
// answer: the key has another type, or is being moved between two nodes of a Cluster, or the recorded place has just changed. The result ok
// is also false if the user lacks the permission for transactions, or the server only imitates Redis.
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
		ok = ok && (!ofNoted || idOfNoted(l.Noted) == at) // otherwise the recorded place has changed meanwhile
		return nil
	}
	err = c.Ask(ctx, q)
	return l, ok, err
}

// idOfNoted returns the id of a recorded place, or the id before all entries if no place is recorded.
func idOfNoted(noted string) string {
	id, _, _ := strings.Cut(noted, " ")
	return cmp.Or(id, place.ID{}.String())
}

// gapError returns the error about removed entries that the job has not read. The error says what an operator can do.
func (s *Stream) gapError(at place.Place, missing string) error {
	return fmt.Errorf("%w: stream %q no longer has entry %s, which is the position of job %q: %s. "+
		"To continue after the gap, set `on_gap: continue` for one run; to start again at `start`, delete the job's row for %q from "+
		"baton_position",
		flush.ErrGap, s.Live, at.ID, s.Job, missing, s.Live)
}
