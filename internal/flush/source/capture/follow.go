package capture

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"baton/internal/redisconn/follow"
	"baton/internal/redisconn/follow/keys"
)

// The pauses between two attempts to follow. One that has followed for a while begins anew.
const (
	firstPause   = 100 * time.Millisecond
	longestPause = 5 * time.Second
	steadyAfter  = 30 * time.Second
)

// tableReader asks the server for its commands.
type tableReader func(context.Context) (*keys.Table, error)

// start begins to follow. The lock is held.
func (f *feed) start(from *follow.Position) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	f.end = func() {
		cancel()
		<-done
	}
	go func() {
		defer close(done)
		defer func() {
			if p := recover(); p != nil { // a failed run, as in any other part of a job
				f.failed(fmt.Errorf("following the replication stream panicked: %v\n%s", p, debug.Stack()))
			}
		}()
		f.followFrom(ctx, from)
	}()
}

// followFrom follows the stream until ctx ends, however often it breaks.
func (f *feed) followFrom(ctx context.Context, from *follow.Position) {
	for pause := firstPause; ctx.Err() == nil; pause = min(2*pause, longestPause) {
		began := time.Now()
		from = f.once(ctx, from)
		if time.Since(began) > steadyAfter {
			pause = firstPause
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}

// once joins the stream and follows it until it breaks. It returns from where to go on.
func (f *feed) once(ctx context.Context, from *follow.Position) *follow.Position {
	master, commands := f.master()
	table, err := commands(ctx)
	if err != nil {
		f.failed(err)
		return from
	}
	s, joined, err := follow.Join(ctx, master, from)
	if err != nil {
		f.failed(err)
		return from
	}
	f.table = table
	f.hasJoined(joined, from == nil)
	err = s.Follow(ctx, f)
	f.failed(err)
	if errors.Is(err, follow.ErrGarbled) {
		f.owe(err.Error())
		return nil
	}
	at := s.Position()
	return &at
}

// failed notes why the stream is not followed.
func (f *feed) failed(err error) {
	f.mu.Lock()
	if f.joined {
		f.joined, f.left = false, time.Now()
	}
	f.problem = err
	f.tries++
	f.mu.Unlock()
	f.tell()
}

// hasJoined notes where the stream begins, and what may be missing before.
func (f *feed) hasJoined(j follow.Joined, first bool) {
	f.mu.Lock()
	switch j.How {
	case follow.Promoted:
		f.former = former{f.reached.ReplID, j.Shared}
		if f.seen > j.Shared {
			f.oweLocked("a failover may have lost writes of which rows were made")
		}
		f.news = "went on with the promoted master (+CONTINUE)"
	case follow.Continued:
		f.news = "went on where it was left (+CONTINUE)"
	default:
		f.former = former{}
		if j.Why != "" {
			f.oweLocked(j.Why)
		} else if !first || f.debts == 0 {
			f.oweLocked("the stream is followed from its end")
		}
		f.news = "began at the end of the stream"
	}
	f.reached, f.how = j.At, j
	f.joined, f.problem = true, nil
	f.mu.Unlock()
	f.tell()
}

// close ends it.
func (f *feed) close() {
	f.mu.Lock()
	end := f.end
	f.end, f.joined = nil, false
	f.mu.Unlock()
	if end != nil {
		end()
	}
}
