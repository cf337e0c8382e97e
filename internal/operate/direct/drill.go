package direct

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"baton/internal/operate"
	"baton/internal/redislock"
	"baton/internal/text"
)

// DrillResult is one measured handover, with times in milliseconds. If both ends of a time are events in the history, the time is measured
// by Redis' clock.
type DrillResult struct {
	From  string `json:"from"`
	To    string `json:"to"`
	Epoch int64  `json:"epoch"` // the epoch of the new term
	// Drain is the time from the order to the release. In this time the leader received the order and ended its work.
	Drain text.Seconds `json:"drain_seconds"`
	// Gap is the time from the release to the next term. In this time no node led.
	Gap text.Seconds `json:"gap_seconds"`
	// Took is the time from the order until the new term was seen.
	Took  text.Seconds `json:"took_seconds"`
	Lease text.Seconds `json:"lease_seconds"`
}

// InTime reports whether the handover took no longer than a lease lasts, because that is the time that a crash would cost.
func (d DrillResult) InTime() bool { return d.Took <= d.Lease }

// ErrNoOtherNode means that no other node could take over.
var ErrNoOtherNode = errors.New("no other live node may lead: a drill would leave the jobs without a leader")

// Drill measures real handovers. It gives the order o several times, one after the other; the argument rounds is how often. If the argument
// back is true, the first leader leads again at the end, which may take one more handover.
func (s *Site) Drill(ctx context.Context, o operate.Order, rounds int, back bool) ([]DrillResult, error) {
	done, err := s.session().drills(ctx, o, rounds, back)
	return done, coded(err)
}

func (l session) drills(ctx context.Context, o operate.Order, rounds int, back bool) ([]DrillResult, error) {
	var done []DrillResult
	first := ""
	for range rounds {
		d, err := l.drill(ctx, o)
		if err != nil {
			return done, err
		}
		if first == "" {
			first = d.From
		}
		done = append(done, d)
		o.To = "" // the next handover goes to any node that is ready
	}
	if back && done[len(done)-1].To != first {
		o.To, o.Reason = first, strings.TrimPrefix(o.Reason+", and back", ", ")
		d, err := l.drill(ctx, o)
		if err != nil {
			return done, fmt.Errorf("give the lead back to %s: %w", first, err)
		}
		done = append(done, d)
	}
	return done, nil
}

func (l session) drill(ctx context.Context, o operate.Order) (DrillResult, error) {
	before, err := l.state(ctx)
	if err != nil {
		return DrillResult{}, err
	}
	follows := func(n redislock.Node) bool { return n.ID != before.Leader && CoolDownOf(before, n.ID) == "" }
	if before.Leader != "" && !slices.ContainsFunc(before.Candidates(), follows) {
		return DrillResult{}, ErrNoOtherNode
	}
	h, err := stepDown(ctx, l, o, o.Wait)
	if err != nil {
		return DrillResult{}, err
	}
	d := DrillResult{From: h.From, To: h.NodeID, Epoch: h.Epoch, Took: h.Took, Lease: text.Seconds(before.TTL)}
	after, err := l.election.State(ctx, eventsShown)
	if err != nil {
		return d, err
	}
	var released, won time.Time
	for _, e := range eventsOf(after) {
		switch {
		case e.Epoch == before.Epoch && e.NodeID == h.From && (e.Event == "stepped_down" || e.Event == "released"):
			released = e.At
		case e.Epoch == h.Epoch && e.Event == "won":
			won = e.At
		}
	}
	if !released.IsZero() && !won.IsZero() { // the history may not contain these events
		d.Drain = text.Seconds(max(released.Sub(before.Now), 0))
		d.Gap = text.Seconds(won.Sub(released))
	}
	return d, nil
}
