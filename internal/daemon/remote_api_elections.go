package daemon

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Snapshot is the state of the election and its jobs, as the node knows it.
func (c *Client) Snapshot(ctx context.Context) (Snapshot, error) {
	s, err := get[Snapshot](ctx, c, nil, "status")
	if err != nil {
		return s, err
	}
	c.mu.Lock()
	c.last = &s
	c.mu.Unlock()
	if s.Error != "" {
		return s, fmt.Errorf("%s cannot tell: %s", c.server, s.Error)
	}
	return s, nil
}

// known is a Snapshot for what nearly never changes.
func (c *Client) known() Snapshot {
	c.mu.Lock()
	last := c.last
	c.mu.Unlock()
	if last != nil {
		return *last
	}
	s, _ := c.Snapshot(context.Background()) // it ends by itself; what is not known is asked for again
	return s
}

// LockKey is the key of the node's own election.
func (c *Client) LockKey() string { return c.known().LockKey }

// Leader is who holds the lock now.
func (c *Client) Leader(ctx context.Context) (leader *Leader, vacant string, err error) {
	s, err := c.Snapshot(ctx)
	return s.Leader, s.Vacancy, err
}

// Events is the history of the election, the oldest of the last n first.
func (c *Client) Events(ctx context.Context, n int) ([]Event, error) {
	reply, err := get[struct{ Events []Event }](ctx, c, url.Values{"n": {strconv.Itoa(min(max(n, 1), 1000))}}, "events")
	events := make([]Event, 0, len(reply.Events))
	for _, e := range slices.Backward(reply.Events) {
		events = append(events, e)
	}
	return events, err
}

// Explain tells why a node leads or not; "" is the one that is asked.
func (c *Client) Explain(ctx context.Context, node string) Explanation {
	if node == "" {
		node = c.known().NodeID
	}
	x, err := get[Explanation](ctx, c, nil, "explain", node)
	if err == nil && len(x.Reasons) > 0 {
		return x
	}
	return Explanation{NodeID: node, Reasons: []Why{{Code: WhyRedis, What: fmt.Sprintf("nothing is known: %v", err), Do: "ask another node, or on its host"}}}
}

// signed is the body of an order, with who gives it and why: "by alice: upgrade".
func signed(by string, body map[string]any) map[string]any {
	if body == nil {
		body = map[string]any{}
	}
	name, reason, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(by, "asked "), "by "), ": ")
	body["by"], body["reason"] = name, reason
	return body
}

// patience is how long to wait, as the API takes it.
func patience(wait time.Duration) string {
	const most = 90 * time.Second
	return min(max(wait, 0), most).String()
}

// StepDown asks the leader to step down and waits.
func (c *Client) StepDown(ctx context.Context, to, reason string, wait time.Duration) (Handover, error) {
	return c.StepDownFrom(ctx, "", to, reason, wait)
}

// StepDownFrom asks the leader of another election that the node takes part in.
func (c *Client) StepDownFrom(ctx context.Context, lockKey, to, reason string, wait time.Duration) (Handover, error) {
	out, err := c.order(ctx, signed(reason, map[string]any{"lock": lockKey, "to": to, "wait": patience(wait)}), "stepdown")
	return Handover{From: out.From, To: out.NodeID, Epoch: out.Epoch, TookMS: out.TookMS}, err
}

// Pause has nobody lead until Resume, and waits until nobody does.
func (c *Client) Pause(ctx context.Context, reason string, wait time.Duration) (Paused, error) {
	out, err := c.order(ctx, signed(reason, map[string]any{"wait": patience(wait)}), "pause")
	p := Paused{Reason: reason, Since: out.Since, Leader: out.From, TookMS: out.TookMS}
	if out.Was != nil {
		p.Already = out.Was.Reason
	}
	return p, err
}

// Resume ends a pause and waits until somebody leads again.
func (c *Client) Resume(ctx context.Context, reason string, wait time.Duration) (Resumed, error) {
	out, err := c.order(ctx, signed(reason, map[string]any{"wait": patience(wait)}), "resume")
	r := Resumed{Leader: out.NodeID, Epoch: out.Epoch, TookMS: out.TookMS}
	if out.Was != nil {
		r.Was, r.Since = out.Was.Reason, out.Was.Since
	}
	return r, err
}

// Reload has the node read its configuration again.
func (c *Client) Reload(ctx context.Context, by string) error {
	_, err := c.order(ctx, signed(by, nil), "reload")
	var p *problem
	if errors.As(err, &p) && len(p.kinds) == 0 {
		return fmt.Errorf("not reloaded, the old configuration stays in force:\n%w", err)
	}
	return err
}
