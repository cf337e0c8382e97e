package operate

import (
	"errors"
)

// Errors of a Desk and of a Do, matched by errors.Is. Any other is the servers'.
var (
	// ErrNotFound: there is no such thing.
	ErrNotFound = errors.New("not found")
	// ErrRefused: as things stand it cannot be done; the error says why, and what to do.
	ErrRefused = errors.New("refused")
	// ErrInvalid: what was asked for makes no sense; the error says what does.
	ErrInvalid = errors.New("invalid")
	// ErrNobodyLeads: it needs a leader.
	ErrNobodyLeads = errors.New("nobody leads")
)

// Coded is an error with one word that tells programs which one it is.
type Coded struct {
	Code string
	Kind error // one of the above; nil: the servers'
	Err  error
}

func (c *Coded) Error() string   { return c.Err.Error() }
func (c *Coded) Unwrap() []error { return []error{c.Kind, c.Err} }
