package cmdline

import (
	"fmt"
	"io"

	"baton/internal/config"
)

// Env is the environment of a command. A test can replace it.
type Env struct {
	Args           []string // without the program's name
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Getenv         config.Lookup
	Exit           func(code int) // ends the process immediately
}

// These exit codes are used by several commands. `baton help exit-codes` explains them.
const (
	ExitOK       = 0
	ExitFailure  = 1
	ExitUsage    = 2
	ExitNoLeader = 3
)

// ExitError is an error with an exit code for scripts. A nil Err means that the command has already printed the error.
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

// Unwrap returns the inner error, so that errors.Is finds it.
func (e *ExitError) Unwrap() error { return e.Err }

// WithCode returns err with an exit code. A nil err means that the command has already printed the error.
func WithCode(code int, err error) error { return &ExitError{code, err} }

// UsageError marks err as a usage error: the arguments are wrong, or the configuration cannot be used.
func UsageError(err error) error { return WithCode(ExitUsage, err) }

// NoLeader returns the error that no node leads. The argument why is the reason why no node may lead, or "" if there is no such reason.
func NoLeader(lockKey, why string) error {
	if why == "" {
		why = "is a node running? See baton status"
	}
	return WithCode(ExitNoLeader, fmt.Errorf("nobody holds lock %q: %s", lockKey, why))
}
