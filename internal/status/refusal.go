package status

import (
	"errors"
	"net/http"
)

// refusal is why a request is not served, with the status code that says so.
type refusal struct {
	code int
	text string
}

func (r *refusal) Error() string { return r.text }

// errBusy is that others are served first.
var errBusy = &refusal{http.StatusServiceUnavailable, "too many requests at a time: try again in a second"}

// refused is the refusal in an error, one of 403 if there is none.
func refused(err error) *refusal {
	if r, ok := errors.AsType[*refusal](err); ok {
		return r
	}
	return &refusal{http.StatusForbidden, err.Error()}
}
