package operate

import "errors"

// Kinds of errors, matched by errors.Is. Any other error is a server's.
var (
	// ErrNotFound: there is no such thing.
	ErrNotFound = errors.New("not found")
	// ErrRefused: the present state forbids it; the error says why, and how to change that.
	ErrRefused = errors.New("refused")
	// ErrInvalid: the request makes no sense; the error says how to mend it.
	ErrInvalid = errors.New("invalid")
	// ErrNoLeader: the order needs a leader.
	ErrNoLeader = errors.New("no node leads")
)

// Errors that keep being themselves over HTTP, matched by errors.Is.
var (
	// ErrNoJob: the configuration has no such job.
	ErrNoJob = errors.New("no such job")
	// ErrNoRun: neither what goes on nor the history has such a run.
	ErrNoRun = errors.New("no such run")
	// ErrRunLost: the end of a run is unknown.
	ErrRunLost = errors.New("it is unknown how the run ended")
	// ErrNoOutput says that a job of that kind prints nothing.
	ErrNoOutput = errors.New("prints nothing")
	// ErrNoLetter: there is no such dead letter, or no longer.
	ErrNoLetter = errors.New("no such dead letter")
	// ErrManyLetters: an id is the beginning of several.
	ErrManyLetters = errors.New("several dead letters have an id that begins so")
	// ErrDeadUsage: this configuration does not allow the request.
	ErrDeadUsage = errors.New("cannot be done")
)

// Errors of a [Client], matched by errors.Is.
var (
	// ErrNotAllowed: the token is missing, wrong, or not taken.
	ErrNotAllowed = errors.New("not allowed")
	// ErrNoServer: the client could not reach the node.
	ErrNoServer = errors.New("the node cannot be reached")
	// errNoReply: the client sent an order, and does not know the outcome.
	errNoReply = errors.New("no reply to the order")
)

// Coded is an error with one word that programs recognise it by.
type Coded struct {
	Code string
	Kind error // one of the kinds above; nil: the servers'
	Err  error
}

func (c *Coded) Error() string   { return c.Err.Error() }
func (c *Coded) Unwrap() []error { return []error{c.Kind, c.Err} }

// known are the errors that keep being themselves over HTTP, and how the API tells them.
func known() []Coded {
	return []Coded{
		{"no_leader", ErrNoLeader, ErrNoLeader},
		{"no_job", ErrNotFound, ErrNoJob},
		{"no_run", ErrNotFound, ErrNoRun},
		{"no_letter", ErrNotFound, ErrNoLetter},
		{"many_letters", ErrRefused, ErrManyLetters},
		{"dead_usage", ErrInvalid, ErrDeadUsage},
		{"no_output", ErrNotFound, ErrNoOutput},
		{"run_lost", ErrNotFound, ErrRunLost},
	}
}

// WithCode gives an error the kind and the word that the API has for it.
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

// As gives an error of a server the identity of one of this package, and keeps its text.
func As(err, identity error) error { return identified{err, identity} }

type identified struct {
	error
	identity error
}

func (i identified) Unwrap() []error { return []error{i.error, i.identity} }
