package main

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"baton/internal/elector"
	"baton/test/linear/wire"
)

// recorded is a lock that records when each operation began, and when and how it ended.
type recorded struct {
	lock     elector.Lock
	diary    *diary
	floor    *floor
	calls    *atomic.Int64 // number of calls of the process
	meddling bool
}

func (r *recorded) call(op wire.Op, owner string, epoch int64) (n int64) {
	n = r.calls.Add(1)
	r.diary.write(wire.Line{Kind: wire.Call, At: now(), N: n, Op: op, Owner: owner, Epoch: epoch, Wall: time.Now().Unix(), Meddling: r.meddling})
	return n
}

func (r *recorded) returned(n int64, outcome wire.Outcome, epoch int64, err error) {
	r.ended(n, "", outcome, epoch, err)
}

// ended records the end of an operation, and the owner that has won, which may be another owner than the one that asked.
func (r *recorded) ended(n int64, owner string, outcome wire.Outcome, epoch int64, err error) {
	l := wire.Line{Kind: wire.Return, At: now(), N: n, Outcome: outcome, Epoch: epoch, Owner: owner}
	if err != nil {
		l.Outcome, l.Text = outcomeOf(err), err.Error()
	}
	r.diary.write(l)
}

func outcomeOf(err error) wire.Outcome {
	switch {
	case errors.Is(err, elector.ErrLost):
		return wire.Lost
	case errors.Is(err, elector.ErrRefused):
		return wire.Refused
	}
	return wire.Unknown
}

// Acquire implements elector.Lock.
func (r *recorded) Acquire(ctx context.Context, c elector.Candidate) (elector.Answer, error) {
	n := r.call(wire.Acquire, c.Owner, 0)
	a, err := r.lock.Acquire(ctx, c)
	r.ended(n, a.Owner, map[elector.Outcome]wire.Outcome{elector.Held: wire.Held, elector.Won: wire.Won, elector.Wait: wire.Wait}[a.Outcome], a.Epoch, err)
	if err == nil {
		r.floor.lift(a.Epoch)
	}
	return a, err
}

// Renew implements elector.Lock.
func (r *recorded) Renew(ctx context.Context, owner string, epoch int64) (elector.Order, error) {
	n := r.call(wire.Renew, owner, epoch)
	o, err := r.lock.Renew(ctx, owner, epoch)
	r.returned(n, wire.Done, 0, err)
	return o, err
}

// Release implements elector.Lock.
func (r *recorded) Release(ctx context.Context, owner string, h elector.Handover) error {
	n := r.call(wire.Release, owner, 0)
	err := r.lock.Release(ctx, owner, h)
	r.returned(n, wire.Done, 0, err)
	return err
}

// Raise implements elector.Lock.
func (r *recorded) Raise(ctx context.Context, owner string, floor int64) (int64, error) {
	n := r.call(wire.Raise, owner, floor)
	epoch, err := r.lock.Raise(ctx, owner, floor)
	r.returned(n, wire.Done, epoch, err)
	if err == nil {
		r.floor.lift(epoch)
	}
	return epoch, err
}
