package web

import (
	"net/http"
	"time"
)

// takeWithin is the time limit for writing one event to a reader.
const takeWithin = 5 * time.Second

// EventStream writes server-sent events. Send fails if the reader does not accept an event in time.
type EventStream struct {
	w http.ResponseWriter
	c *http.ResponseController
}

// NewEventStream removes the server's read deadline from a request, because that deadline is meant for pages.
func NewEventStream(w http.ResponseWriter) *EventStream {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // a proxy must not delay events
	e := &EventStream{w: w, c: http.NewResponseController(w)}
	_ = e.c.SetReadDeadline(time.Time{}) // the recorder of a test has no deadlines and returns an error
	return e
}

// Send sends text, which contains one or more complete events.
func (e *EventStream) Send(text []byte) error {
	_ = e.c.SetWriteDeadline(time.Now().Add(takeWithin))
	if _, err := e.w.Write(text); err != nil {
		return err
	}
	return e.c.Flush()
}
