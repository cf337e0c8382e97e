package operate

import "errors"

// These are the kinds of errors, matched by errors.Is. Any other error comes from a server.
var (
	// ErrNotFound means that the requested object does not exist.
	ErrNotFound = errors.New("not found")
	// ErrRefused means that the current state forbids the request. The error says why, and how to change the state.
	ErrRefused = errors.New("refused")
	// ErrInvalid means that the request is invalid. The error says how to correct the request.
	ErrInvalid = errors.New("invalid")
	// ErrNoLeader means that the order needs a leader, but no node leads.
	ErrNoLeader = errors.New("no node leads")
)

// These errors keep their identity over HTTP, and are matched by errors.Is.
var (
	// ErrNoJob means that the configuration does not contain the job.
	ErrNoJob = errors.New("no such job")
	// ErrNoRun means that the run is neither in progress nor in the history.
	ErrNoRun = errors.New("no such run")
	// ErrRunLost means that the end of a run is unknown.
	ErrRunLost = errors.New("it is unknown how the run ended")
	// ErrNoOutput means that jobs of this kind print nothing.
	ErrNoOutput = errors.New("prints nothing")
	// ErrNoLetter means that the dead letter does not exist, or no longer exists.
	ErrNoLetter = errors.New("no such dead letter")
	// ErrManyLetters means that several dead letters have an id with the given beginning.
	ErrManyLetters = errors.New("several dead letters have an id with this beginning")
	// ErrNoRow means that the deleted row is not kept, or no longer kept.
	ErrNoRow = errors.New("no such deleted row is kept")
	// ErrDeadUsage means that the configuration does not allow the request.
	ErrDeadUsage = errors.New("cannot be done")
)

// These errors are returned by a [Client], and are matched by errors.Is.
var (
	// ErrNotAllowed means that the token is missing, wrong or not accepted.
	ErrNotAllowed = errors.New("not allowed")
	// ErrNoServer means that the client could not reach the node.
	ErrNoServer = errors.New("the node cannot be reached")
	// errNoReply means that the client has sent an order, but does not know the outcome.
	errNoReply = errors.New("no reply to the order")
)

// Coded is an error with a code, so that programs recognise the error.
type Coded struct {
	Code string
	Kind error // one of the kinds above; nil for errors of servers
	Err  error
}

func (c *Coded) Error() string   { return c.Err.Error() }
func (c *Coded) Unwrap() []error { return []error{c.Kind, c.Err} }

// PrivateError is an error whose text may contain a user's data. The caller of an order gets this text, but no log contains it.
type PrivateError struct{ Err error }

func (p *PrivateError) Error() string { return p.Err.Error() }
func (p *PrivateError) Unwrap() error { return p.Err }

// known returns the errors that keep their identity over HTTP, with their codes in the API.
func known() []Coded {
	return []Coded{
		{"no_leader", ErrNoLeader, ErrNoLeader},
		{"no_job", ErrNotFound, ErrNoJob},
		{"no_run", ErrNotFound, ErrNoRun},
		{"no_letter", ErrNotFound, ErrNoLetter},
		{"many_letters", ErrRefused, ErrManyLetters},
		{"no_deleted_row", ErrNotFound, ErrNoRow},
		{"dead_usage", ErrInvalid, ErrDeadUsage},
		{"no_output", ErrNotFound, ErrNoOutput},
		{"run_lost", ErrNotFound, ErrRunLost},
	}
}

// WithCode returns err with the kind and the code that the API uses for it.
func WithCode(err error) error {
	if _, given := errors.AsType[*Coded](err); err == nil || given {
		return err
	}
	for _, k := range known() {
		if errors.Is(err, k.Err) {
			return &Coded{Code: k.Code, Kind: k.Kind, Err: err}
		}
	}
	return err
}

// As returns an error with the text of err that matches identity, which is an error of this package.
func As(err, identity error) error { return identified{err, identity} }

type identified struct {
	error
	identity error
}

func (i identified) Unwrap() []error { return []error{i.error, i.identity} }
