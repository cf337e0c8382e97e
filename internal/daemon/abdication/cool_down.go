package abdication

import (
	"fmt"
	"sync"
	"time"

	"baton/internal/text"
)

// CoolDown says until when, and why, this node leaves the lead to others, as the elector has decided.
type CoolDown struct {
	mu    sync.Mutex
	until time.Time
	why   string
}

// Begin records that this node leaves the lead to others for the time d. If an earlier call has set a later end, that end stays.
func (c *CoolDown) Begin(d time.Duration, why string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if until := time.Now().Add(d); until.After(c.until) {
		c.until, c.why = until, why
	}
}

// End records that this node no longer leaves the lead to others.
func (c *CoolDown) End() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.until = time.Time{}
}

// Reason returns why this node leaves the lead to others for now, or "" if this node may lead.
func (c *CoolDown) Reason() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	left := time.Until(c.until)
	if left <= 0 {
		return ""
	}
	return fmt.Sprintf("stands aside for another %v, so that other nodes can lead first: %s", text.Duration(left), c.why)
}
