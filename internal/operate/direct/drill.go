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

// Drilled is one measured handover. Times are by Redis' clock where both ends are
// events of the history, in milliseconds.
type Drilled struct {
	From  string `json:"from"`
	To    string `json:"to"`
	Epoch int64  `json:"epoch"` // of the new term
	// Drain is from the order to the release: the leader got it, and its work ended.
	Drain text.Seconds `json:"drain_seconds"`
	// Gap is from the release to the next term: no node led.
	Gap text.Seconds `json:"gap_seconds"`
	// Took is from the order until the new term was seen.
	Took  text.Seconds `json:"took_seconds"`
	Lease text.Seconds `json:"lease_seconds"`
}

// InTime says whether the handover took no longer than a lease, which is the cost of a crash.
func (d Drilled) InTime() bool { return d.Took <= d.Lease }

// ErrNoOtherNode is the answer where no other node could take over.
var ErrNoOtherNode = errors.New("no other live node may lead: a drill would leave the jobs without a leader")

// Drill is a real handover, measured: rounds of them, by orders like o. With back the lead is given
// back at the end, which is a handover, too.
func (s *Site) Drill(ctx context.Context, o operate.Order, rounds int, back bool) ([]Drilled, error) {
	done, err := s.session().drills(ctx, o, rounds, back)
	return done, coded(err)
}

func (l session) drills(ctx context.Context, o operate.Order, rounds int, back bool) ([]Drilled, error) {
	var done []Drilled
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

func (l session) drill(ctx context.Context, o operate.Order) (Drilled, error) {
	before, err := l.picture(ctx)
	if err != nil {
		return Drilled{}, err
	}
	follows := func(n redislock.Node) bool { return n.ID != before.Leader && CoolDownOf(before, n.ID) == "" }
	if before.Leader != "" && !slices.ContainsFunc(before.Candidates(), follows) {
		return Drilled{}, ErrNoOtherNode
	}
	h, err := stepDown(ctx, l, o, o.Wait)
	if err != nil {
		return Drilled{}, err
	}
	d := Drilled{From: h.From, To: h.NodeID, Epoch: h.Epoch, Took: h.Took, Lease: text.Seconds(before.TTL)}
	after, err := l.election.Picture(ctx, eventsShown)
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
	if !released.IsZero() && !won.IsZero() { // the history may lack them
		d.Drain = text.Seconds(max(released.Sub(before.Now), 0))
		d.Gap = text.Seconds(won.Sub(released))
	}
	return d, nil
}
