package web

import (
	"errors"
	"net/http"
	"time"
)

// OrderWithin bounds the time of an order. The waits inside an order are shorter.
const OrderWithin = 2 * time.Minute

// AllowOrder extends the deadlines of a request for an order: the server's are for pages.
func AllowOrder(w http.ResponseWriter) {
	c := http.NewResponseController(w)
	until := time.Now().Add(OrderWithin + 10*time.Second)
	// A test's recorder has no deadlines.
	_ = errors.Join(c.SetReadDeadline(until), c.SetWriteDeadline(until))
}
