package flush

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/cenkalti/backoff/v5"
)

// sourceError is a failure of one shard; the others can still be flushed.
type sourceError struct{ error }

func (e sourceError) Unwrap() error { return e.error }

// sinkError is a failure of the database inside a source.
type sinkError struct{ error }

func (e sinkError) Unwrap() error { return e.error }

// failedSource wraps an error of a source. After ctx has ended, its cause counts and not the
// error of the connection.
func failedSource(ctx context.Context, action string, source Source, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%s %s: %w (%w)", action, source.Name(), context.Cause(ctx), err)
	}
	if errors.As(err, new(sinkError)) {
		return err
	}
	return sourceError{fmt.Errorf("%s %s: %w", action, source.Name(), err)}
}

// panicked turns a panic of a goroutine into a failed run instead of the end of the process.
// Defer it.
func panicked(err *error, doing string, source Source) {
	if p := recover(); p != nil { //nolint:revive // it is itself deferred
		*err = fmt.Errorf("%s %s panicked: %v\n%s", doing, source.Name(), p, debug.Stack())
	}
}

// retry repeats a transaction after ErrTransient: the ledger makes it happen once. It begins
// nothing after ctx has ended.
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
