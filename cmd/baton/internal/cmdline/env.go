package cmdline

import (
	"fmt"
	"io"

	"baton/internal/config"
)

// Env is the world outside, so that a test can bring its own.
type Env struct {
	Args           []string // without the program's name
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Getenv         config.Lookup
	Exit           func(code int) // ends the process at once
}

// The exit codes that several commands have. `baton help exit-codes` explains them.
const (
	ExitOK       = 0
	ExitFailure  = 1
	ExitUsage    = 2
	ExitNoLeader = 3
)

// ExitError gives an error an exit code, which scripts can test. With a
// nil err the command has said everything itself.
type ExitError struct {
	Code int
	Err  error
}

func (e *ExitError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit code %d", e.Code)
	}
	return e.Err.Error()
}

// Unwrap is for errors.Is.
func (e *ExitError) Unwrap() error { return e.Err }

// WithCode gives an error its exit code; nil: the command has said everything itself.
func WithCode(code int, err error) error { return &ExitError{code, err} }

// UsageError marks an error as the caller's: wrong arguments, or a
// configuration that cannot be used.
func UsageError(err error) error { return WithCode(ExitUsage, err) }

// NoLeader is the error that no node leads; why says why none may, if none may.
func NoLeader(lockKey, why string) error {
	if why == "" {
		why = "is a node running? See baton status"
	}
	return WithCode(ExitNoLeader, fmt.Errorf("nobody holds lock %q: %s", lockKey, why))
}
