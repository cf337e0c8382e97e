package abdication

import (
	"fmt"
	"sync"
	"time"

	"baton/internal/text"
)

// CoolDown is until when this node leaves the lead to others, as the elector makes it, and why.
type CoolDown struct {
	mu    sync.Mutex
	until time.Time
	why   string
}

// Begin notes that this node leaves the lead to others. A longer time that was noted before stays.
func (c *CoolDown) Begin(d time.Duration, why string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if until := time.Now().Add(d); until.After(c.until) {
		c.until, c.why = until, why
	}
}

// End notes that this node leaves the lead to others no longer.
func (c *CoolDown) End() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.until = time.Time{}
}

// Reason is why this node leaves the lead to others for now; "" if it does not.
func (c *CoolDown) Reason() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	left := time.Until(c.until)
	if left <= 0 {
		return ""
	}
	return fmt.Sprintf("stands aside for another %v, so that others go first: %s", text.Duration(left), c.why)
}
