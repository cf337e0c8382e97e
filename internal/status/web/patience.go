package web

import (
	"errors"
	"net/http"
	"time"
)

// OrderWithin is the time limit of an order. The single steps of an order have shorter time limits.
const OrderWithin = 2 * time.Minute

// AllowOrder extends the deadlines of a request that gives an order, because the server's deadlines are meant for pages.
func AllowOrder(w http.ResponseWriter) {
	c := http.NewResponseController(w)
	until := time.Now().Add(OrderWithin + 10*time.Second)
	// The errors are ignored, because the recorder of a test has no deadlines.
	_ = errors.Join(c.SetReadDeadline(until), c.SetWriteDeadline(until))
}
