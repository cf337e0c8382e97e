package site

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"baton/internal/elector"
	"baton/internal/redislock"
)

// Election lets commands and the status page read an election and send orders to it. The election takes place in the Redis of the data, or
// on each master of a quorum.
type Election interface {
	State(ctx context.Context, events int) (redislock.ElectionState, error)
	StepDown(ctx context.Context, to, reason string) (owner, nodeID string, err error)
	StepDownOwner(ctx context.Context, owner string, o elector.Order) error
	Pause(ctx context.Context, reason string) (before *redislock.Pause, err error)
	Resume(ctx context.Context, reason string) (was *redislock.Pause, err error)
	SetCoolDown(ctx context.Context, nodeID string, d time.Duration, reason string) error
	Forget(ctx context.Context, nodes []redislock.Node, before time.Time) error
}

var (
	_ Election = (*redislock.Election)(nil)
	_ Election = elections(nil)
)

// elections are the elections on the masters of a quorum. The answer of the whole election is the answer of a majority of the masters.
type elections []Election

func (e elections) majority() int { return len(e)/2 + 1 }

// slowest limits how long a reading waits for the last masters after a majority of the masters has answered. A master that hangs must not
// make every reading of the election hang.
const slowest = 250 * time.Millisecond

// AskAll asks all masters at the same time and returns the answers that came. It returns an error if fewer than a majority answered.
func AskAll[T any](e elections, ask func(Election) (T, error)) ([]T, error) {
	type answer struct {
		value T
		err   error
	}
	answers := make(chan answer, len(e)) // room for all answers, because the caller may have returned
	for _, one := range e {
		go func() {
			value, err := ask(one)
			answers <- answer{value, err}
		}()
	}
	var good []T
	var problems []error
	var late <-chan time.Time
	for left := len(e); left > 0; left-- {
		select {
		case a := <-answers:
			if a.err != nil {
				problems = append(problems, a.err)
			} else if good = append(good, a.value); len(good) == e.majority() {
				late = time.After(slowest)
			}
		case <-late:
			return good, nil
		}
	}
	if len(e) == 1 && len(problems) == 1 {
		return nil, problems[0]
	}
	if len(good) < e.majority() {
		return nil, fmt.Errorf("%d of the %d masters of redis.quorum answer, and %d are needed: %w",
			len(good), len(e), e.majority(), errors.Join(problems...))
	}
	return good, nil
}

// State returns the state that a majority of the masters agrees on. If only a minority has an owner, State leaves this owner out, because
// the owner's term has ended or was never won.
func (e elections) State(ctx context.Context, events int) (redislock.ElectionState, error) {
	states, err := AskAll(e, func(one Election) (redislock.ElectionState, error) { return one.State(ctx, 3*events) })
	if err != nil {
		return redislock.ElectionState{}, err
	}
	owner := agreed(e.majority(), states, func(p redislock.ElectionState) string { return p.Owner })
	// The newest term comes first. Of the states of one term, the state of the node that has held it longest comes first.
	slices.SortStableFunc(states, func(a, b redislock.ElectionState) int {
		if mine, other := a.Owner == owner, b.Owner == owner; mine != other {
			if mine {
				return -1
			}
			return 1
		}
		if a.Epoch != b.Epoch {
			return cmp.Compare(b.Epoch, a.Epoch)
		}
		return a.Since.Compare(b.Since)
	})
	p := states[0]
	if p.Owner != owner {
		p.Owner, p.Leader, p.Left = "", "", 0
	}
	if owner == "" {
		p.Leader = ""
	} else if epoch := agreed(e.majority(), states, func(p redislock.ElectionState) string { return epochOf(p, owner) }); epoch != "" {
		p.Epoch, _ = strconv.ParseInt(epoch, 10, 64) // epochOf formatted it, so it is valid
	}
	// A forged epoch on one master does not keep a majority from leading, but must also be corrected.
	p.Forged = slices.ContainsFunc(states, func(p redislock.ElectionState) bool { return p.Forged })
	p.Nodes = mergeNodes(states)
	p.Events = settled(p.Events, events)
	p.Control = e.control(states, p.Control)
	return p, nil
}

// epochOf returns the epoch of an owner's term on one master. If this master granted the lock only after the majority, its epoch may be
// higher, and then belongs to no term.
func epochOf(p redislock.ElectionState, owner string) string {
	if p.Owner != owner {
		return ""
	}
	return strconv.FormatInt(p.Epoch, 10)
}

// control returns c with a pause or a quarantine, if so many masters report it that no node can win a majority of the masters.
func (e elections) control(states []redislock.ElectionState, c redislock.Control) redislock.Control {
	c.Paused, c.Quarantine, c.StepDown = nil, 0, ""
	var paused []*redislock.Pause
	var quarantines []time.Duration
	for _, p := range states {
		if p.Paused != nil {
			paused = append(paused, p.Paused)
		}
		if p.Quarantine > 0 {
			quarantines = append(quarantines, p.Quarantine)
		}
		if p.StepDown != "" {
			c.StepDown = p.StepDown // the leader obeys each master that gives the order
		}
	}
	against := len(e) - e.majority() + 1
	if len(paused) >= against {
		c.Paused = paused[0]
	}
	if len(quarantines) >= against {
		slices.Sort(quarantines)
		c.Quarantine = quarantines[len(quarantines)-against] // then enough quarantines are over
	}
	return c
}

// agreed calls the function of with each state. If this function returns the same text for at least as many states as the argument enough
// says, agreed returns this text. Otherwise agreed returns "".
func agreed(enough int, states []redislock.ElectionState, of func(redislock.ElectionState) string) string {
	count := map[string]int{}
	for _, p := range states {
		if text := of(p); text != "" {
			if count[text]++; count[text] >= enough {
				return text
			}
		}
	}
	return ""
}

// mergeNodes returns the last registration of every node. Each master dates the registrations by its own clock, so mergeNodes converts
// these dates to the clock of the first master.
func mergeNodes(states []redislock.ElectionState) []redislock.Node {
	latest := map[string]redislock.Node{}
	for _, p := range states {
		for _, n := range p.Nodes {
			n.SeenMS += states[0].Now.Sub(p.Now).Milliseconds()
			if have, ok := latest[n.ID]; !ok || n.SeenMS > have.SeenMS {
				latest[n.ID] = n
			}
		}
	}
	nodes := make([]redislock.Node, 0, len(latest))
	for _, n := range latest {
		nodes = append(nodes, n)
	}
	slices.SortFunc(nodes, func(a, b redislock.Node) int { return strings.Compare(a.ID, b.ID) })
	return nodes
}

// settled leaves out the terms that one master granted, but no majority. In the history of that master, such a term is won and then
// withdrawn. The argument events has the newest event first, and settled returns at most n events.
func settled(events []redislock.Event, n int) []redislock.Event {
	const won, withdrawn = "won", "withdrawn"
	type term struct {
		node  string
		epoch int64
	}
	void := map[term]bool{}
	kept := []redislock.Event{}
	for _, ev := range events {
		of := term{ev.NodeID, ev.Epoch}
		switch {
		case ev.Event == withdrawn:
			void[of] = true
		case ev.Event == won && void[of]:
		default:
			kept = append(kept, ev)
		}
	}
	return kept[:min(n, len(kept))]
}

// StepDown sends a step-down order to the leader through every master. The leader obeys the first of these orders that reaches it. A slow
// master may receive its order only after the next leader holds the lock there.
func (e elections) StepDown(ctx context.Context, to, reason string) (owner, nodeID string, err error) {
	p, err := e.State(ctx, 0)
	if err != nil {
		return "", "", err
	}
	if p.Owner == "" {
		return "", "", redislock.ErrNoLeader
	}
	return p.Owner, p.Leader, e.StepDownOwner(ctx, p.Owner, elector.Order{To: to, Reason: reason})
}

// StepDownOwner sends the order o through every master to the leader whose term has this owner.
func (e elections) StepDownOwner(ctx context.Context, owner string, o elector.Order) error {
	return e.all(func(one Election) error {
		err := one.StepDownOwner(ctx, owner, o)
		if errors.Is(err, redislock.ErrNoLeader) {
			return nil // this master has not granted the term, or has granted the next one
		}
		return err
	})
}

// Pause pauses the elections on all masters. It succeeds if the elections on a majority are paused.
func (e elections) Pause(ctx context.Context, reason string) (*redislock.Pause, error) {
	return e.pauses(func(one Election) (*redislock.Pause, error) { return one.Pause(ctx, reason) })
}

// Resume ends the pause of the elections on all masters.
func (e elections) Resume(ctx context.Context, reason string) (*redislock.Pause, error) {
	return e.pauses(func(one Election) (*redislock.Pause, error) { return one.Resume(ctx, reason) })
}

func (e elections) pauses(ask func(Election) (*redislock.Pause, error)) (*redislock.Pause, error) {
	befores, err := AskAll(e, ask)
	for _, before := range befores {
		if before != nil {
			return before, err
		}
	}
	return nil, err
}

// SetCoolDown records the cool-down of a node on all masters.
func (e elections) SetCoolDown(ctx context.Context, nodeID string, d time.Duration, reason string) error {
	return e.all(func(one Election) error { return one.SetCoolDown(ctx, nodeID, d, reason) })
}

// Forget removes the nodes from the list of nodes on every master.
func (e elections) Forget(ctx context.Context, nodes []redislock.Node, before time.Time) error {
	return e.all(func(one Election) error { return one.Forget(ctx, nodes, before) })
}

func (e elections) all(ask func(Election) error) error {
	_, err := AskAll(e, func(one Election) (struct{}, error) { return struct{}{}, ask(one) })
	return err
}
