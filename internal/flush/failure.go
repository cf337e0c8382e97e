package flush

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/cenkalti/backoff/v5"
)

// sourceError is a failure of one shard, which need not keep the others from being flushed.
type sourceError struct{ error }

func (e sourceError) Unwrap() error { return e.error }

// sinkError is a failure of the database that a source comes across.
type sinkError struct{ error }

func (e sinkError) Unwrap() error { return e.error }

// failedSource wraps what a source answered. Once ctx has ended its cause is
// the reason, whatever the connection said about it.
func failedSource(ctx context.Context, action string, source Source, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%s %s: %w (%w)", action, source.Name(), context.Cause(ctx), err)
	}
	if errors.As(err, new(sinkError)) {
		return err
	}
	return sourceError{fmt.Errorf("%s %s: %w", action, source.Name(), err)}
}

// panicked makes a panic of a goroutine a failed run, like one anywhere else in a
// job, and not the end of the process. Defer it.
func panicked(err *error, doing string, source Source) {
	if p := recover(); p != nil { //nolint:revive // it is itself deferred
		*err = fmt.Errorf("%s %s panicked: %v\n%s", doing, source.Name(), p, debug.Stack())
	}
}

// retry repeats what ended in ErrTransient: the ledger makes sure that it
// happens once. Nothing is begun after ctx has ended.
func retry[T any](ctx context.Context, limits Retry, do func() (T, error)) (T, error) {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.MaxInterval = limits.Wait, limits.MaxWait
	return backoff.Retry(ctx, func() (T, error) {
		if ctx.Err() != nil {
			var none T
			return none, backoff.Permanent(context.Cause(ctx))
		}
		out, err := do()
		if err != nil && !errors.Is(err, ErrTransient) {
			err = backoff.Permanent(err)
		}
		return out, err
	}, backoff.WithBackOff(b), backoff.WithMaxTries(uint(limits.Attempts)), backoff.WithMaxElapsedTime(0))
}
