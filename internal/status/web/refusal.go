package web

import (
	"errors"
	"net/http"
)

// Refusal is the reason why a request is not served, with its status code.
type Refusal struct {
	Code int
	Text string
}

// Refuse returns a Refusal.
func Refuse(code int, text string) *Refusal { return &Refusal{Code: code, Text: text} }

func (r *Refusal) Error() string { return r.Text }

// ErrBusy refuses a request while too many others are being served.
var ErrBusy = &Refusal{http.StatusServiceUnavailable, "too many requests at a time: try again in a second"}

// Refused returns the refusal in an error. It makes a 403 of any other error.
func Refused(err error) *Refusal {
	if r, ok := errors.AsType[*Refusal](err); ok {
		return r
	}
	return &Refusal{http.StatusForbidden, err.Error()}
}
