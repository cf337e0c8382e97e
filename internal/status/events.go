package status

import (
	"fmt"
	"net/http"
	"time"
)

// takeWithin is what a reader gets to take what a stream sends.
const takeWithin = 5 * time.Second

// eventStream writes server-sent events. Whoever does not take them in time is let go.
type eventStream struct {
	w http.ResponseWriter
	c *http.ResponseController
}

// newEventStream takes the server's limits off a request, which are for pages.
func newEventStream(w http.ResponseWriter) *eventStream {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // a proxy shall pass on what it gets
	e := &eventStream{w: w, c: http.NewResponseController(w)}
	_ = e.c.SetReadDeadline(time.Time{}) // a recorder of a test has none
	return e
}

func (e *eventStream) comment(text string) error {
	return e.send([]byte(": " + text + "\n\n"))
}

// event sends one; its data must be one line.
func (e *eventStream) event(name, id string, data []byte) error {
	return e.send(fmt.Appendf(nil, "event: %s\nid: %s\ndata: %s\n\n", name, id, data))
}

func (e *eventStream) send(text []byte) error {
	_ = e.c.SetWriteDeadline(time.Now().Add(takeWithin))
	if _, err := e.w.Write(text); err != nil {
		return err
	}
	return e.c.Flush()
}
