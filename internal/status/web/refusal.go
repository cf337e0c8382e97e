package web

import (
	"errors"
	"net/http"
)

// Refusal is the reason why a request is not served, with the HTTP status code.
type Refusal struct {
	Code int
	Text string
}

// Refuse returns a Refusal with the given status code and text.
func Refuse(code int, text string) *Refusal { return &Refusal{Code: code, Text: text} }

func (r *Refusal) Error() string { return r.Text }

// ErrBusy refuses a request because too many other requests are being served.
var ErrBusy = &Refusal{http.StatusServiceUnavailable, "too many requests at the same time: try again in a second"}

// Refused returns the Refusal in an error. It turns any other error into a Refusal with the status code 403.
func Refused(err error) *Refusal {
	if r, ok := errors.AsType[*Refusal](err); ok {
		return r
	}
	return &Refusal{http.StatusForbidden, err.Error()}
}
