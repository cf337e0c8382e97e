package abdication

import (
	"fmt"
	"sync"
	"time"

	"baton/internal/text"
)

// Aside is until when this node leaves the lead to others, as the elector makes it, and why.
type Aside struct {
	mu    sync.Mutex
	until time.Time
	why   string
}

// Stand notes that this node leaves the lead to others. A longer time that was noted before stays.
func (a *Aside) Stand(d time.Duration, why string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if until := time.Now().Add(d); until.After(a.until) {
		a.until, a.why = until, why
	}
}

// End notes that this node leaves the lead to others no longer.
func (a *Aside) End() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.until = time.Time{}
}

// Reason is why this node leaves the lead to others for now; "" if it does not.
func (a *Aside) Reason() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	left := time.Until(a.until)
	if left <= 0 {
		return ""
	}
	return fmt.Sprintf("stands aside for another %v, so that others go first: %s", text.Duration(left), a.why)
}
