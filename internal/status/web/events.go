package web

import (
	"net/http"
	"time"
)

// takeWithin is what a reader gets to take what a stream sends.
const takeWithin = 5 * time.Second

// EventStream writes server-sent events. Whoever does not take them in time is let go.
type EventStream struct {
	w http.ResponseWriter
	c *http.ResponseController
}

// NewEventStream takes the server's limits off a request, which are for pages.
func NewEventStream(w http.ResponseWriter) *EventStream {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // a proxy shall pass on what it gets
	e := &EventStream{w: w, c: http.NewResponseController(w)}
	_ = e.c.SetReadDeadline(time.Time{}) // a recorder of a test has none
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
