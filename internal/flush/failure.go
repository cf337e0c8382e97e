package flush

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/cenkalti/backoff/v5"
)

// sourceError is an error of one shard. After such an error the other shards can still be flushed.
type sourceError struct{ error }

func (e sourceError) Unwrap() error { return e.error }

// sinkError is an error that the database returned to a source. It is an error of the database, not of the source.
type sinkError struct{ error }

func (e sinkError) Unwrap() error { return e.error }

// failedSource wraps an error of a source. If ctx has ended, the error first names the cause of ctx, and then the error of the connection.
func failedSource(ctx context.Context, action string, source Source, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%s %s: %w (%w)", action, source.Name(), context.Cause(ctx), err)
	}
	if errors.As(err, new(sinkError)) {
		return err
	}
	return sourceError{fmt.Errorf("%s %s: %w", action, source.Name(), err)}
}

// panicked turns a panic of a goroutine into an error of the run, so that the process does not end. It must be called by defer.
func panicked(err *error, doing string, source Source) {
	if p := recover(); p != nil { //nolint:revive // panicked itself is the deferred function
		*err = fmt.Errorf("%s %s panicked: %v\n%s", doing, source.Name(), p, debug.Stack())
	}
}

// retry repeats a transaction after ErrTransient. The ledger ensures that the transaction is applied only once. After ctx has ended, retry
// begins no further attempt.
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
