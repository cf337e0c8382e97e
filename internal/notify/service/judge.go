package service

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// ErrRefused means that a target will never accept an event.
var ErrRefused = errors.New("refused")

// Refused returns an error that matches [ErrRefused].
func Refused(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrRefused, fmt.Sprintf(format, args...))
}

// Later is the error of a service that asks the sender to wait before the next message.
type Later struct {
	Wait time.Duration
	Err  error
}

// Error implements error.
func (l *Later) Error() string { return l.Err.Error() }

// longestWait is the maximum pause that a service can request.
const longestWait = 10 * time.Minute

// slowDown is the pause after a service has answered that it got too many requests, because the limits of services are per minute.
const slowDown = time.Minute

// judge returns the result of a delivery, from the status code of the answer.
func judge(a Answer) error {
	text := strings.TrimSpace(fmt.Sprintf("the answer is %d %s", a.Status, http.StatusText(a.Status)))
	switch {
	case a.Status >= 200 && a.Status < 300:
		return nil
	case a.Status >= 300 && a.Status < 400:
		return Refused("%s: the server redirects to another address; correct the address", text)
	case a.Status == http.StatusRequestTimeout || a.Status == http.StatusTooManyRequests, a.Status >= 500:
		if wait := retryAfter(a.RetryAfter); wait > 0 {
			return &Later{wait, errors.New(text)}
		}
		return errors.New(text)
	}
	return Refused("%s", text)
}

// coded is a service that answers every request with a code in a JSON body. The status code is not relevant, and only the code 0 means that
// the message was delivered.
type coded struct {
	service  string         // such as "a DingTalk bot"
	field    string         // the name of the field with the code
	refusals map[int]string // codes that make another attempt useless, with the reasons
	tooMany  []int          // codes that mean that the limit is reached
}

func (c coded) judge(a Answer) error {
	var fields map[string]json.RawMessage
	code := -1
	if json.Unmarshal(a.Body, &fields) != nil || json.Unmarshal(fields[c.field], &code) != nil {
		if err := judge(a); err != nil {
			return err
		}
		return fmt.Errorf("the answer is %d without %s: is this the address of %s?", a.Status, c.field, c.service)
	}
	if code == 0 {
		return judge(a)
	}
	if why, refused := c.refusals[code]; refused {
		return Refused("%s %d: %s", c.field, code, why)
	}
	if slices.Contains(c.tooMany, code) {
		return &Later{slowDown, fmt.Errorf("%s %d: too many messages", c.field, code)}
	}
	return fmt.Errorf("the answer has %s %d", c.field, code)
}
