package web

import (
	"errors"
	"net/http"
	"time"
)

// OrderWithin is what an order gets; what it waits for is less.
const OrderWithin = 2 * time.Minute

// AllowOrder gives a request the time that an order takes: those of the server are for pages.
func AllowOrder(w http.ResponseWriter) {
	c := http.NewResponseController(w)
	until := time.Now().Add(OrderWithin + 10*time.Second)
	// A recorder of a test has no deadlines.
	_ = errors.Join(c.SetReadDeadline(until), c.SetWriteDeadline(until))
}
