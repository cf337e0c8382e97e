package alert

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"baton/internal/notify"
)

// Tested is the result of a test notification to one target.
type Tested struct {
	Target string
	Err    error // nil if the target has accepted the test
}

// Test sends a test to the target with the given name, or to all targets, and returns their results. It returns an error if there is no
// such target.
func (n *Notifications) Test(ctx context.Context, target, by string) ([]Tested, error) {
	names, e, err := n.prepareTest(target, by)
	if err != nil {
		return nil, err
	}
	all := make([]Tested, len(names))
	var wg sync.WaitGroup
	for i, name := range names {
		wg.Go(func() {
			known, err := n.dispatch.Try(ctx, name, e)
			if !known {
				err = errors.New("a reload has removed this target")
			}
			all[i] = Tested{name, err}
		})
	}
	wg.Wait()
	return all, nil
}

func (n *Notifications) prepareTest(target, by string) (names []string, e notify.Event, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, t := range n.targets {
		names = append(names, t.name)
	}
	e = notify.Event{
		Kind: notify.Test, At: time.Now().UTC().Truncate(time.Millisecond), NodeID: n.nodeID,
		Text: fmt.Sprintf("This is a test: node %s can send notifications here (ordered %s)", n.nodeID, by),
	}
	if id, err := n.newID(); err == nil { // the test is sent even without an ID
		e.ID = id
	}
	if len(names) == 0 {
		return nil, e, errors.New("the configuration of this node has no notify, so there is no target to test")
	}
	if target == "" {
		return names, e, nil
	}
	if slices.Contains(names, target) {
		return []string{target}, e, nil
	}
	return nil, e, fmt.Errorf("there is no notify target %q; there is %s", target, strings.Join(names, ", "))
}
