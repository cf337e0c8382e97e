package web

import (
	"net/http"
	"time"
)

// takeWithin bounds the time for writing one event to a reader.
const takeWithin = 5 * time.Second

// EventStream writes server-sent events. Send fails for a reader that does not take them in time.
type EventStream struct {
	w http.ResponseWriter
	c *http.ResponseController
}

// NewEventStream removes the server's read deadline from a request: that is meant for pages.
func NewEventStream(w http.ResponseWriter) *EventStream {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // a proxy must not hold events back
	e := &EventStream{w: w, c: http.NewResponseController(w)}
	_ = e.c.SetReadDeadline(time.Time{}) // a test's recorder has no deadlines and returns an error
	return e
}

// Send sends whole events.
func (e *EventStream) Send(text []byte) error {
	_ = e.c.SetWriteDeadline(time.Now().Add(takeWithin))
	if _, err := e.w.Write(text); err != nil {
		return err
	}
	return e.c.Flush()
}
