package web

import (
	"errors"
	"net/http"
)

// Refusal is why a request is not served, with the status code that says so.
type Refusal struct {
	Code int
	Text string
}

// Refuse returns one.
func Refuse(code int, text string) *Refusal { return &Refusal{Code: code, Text: text} }

func (r *Refusal) Error() string { return r.Text }

// ErrBusy is that others are served first.
var ErrBusy = &Refusal{http.StatusServiceUnavailable, "too many requests at a time: try again in a second"}

// Refused is the refusal in an error, one of 403 if there is none.
func Refused(err error) *Refusal {
	if r, ok := errors.AsType[*Refusal](err); ok {
		return r
	}
	return &Refusal{http.StatusForbidden, err.Error()}
}
