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

// Election lets commands and the status page read an election and give it orders. It is
// the election beside the data, or those on the masters of a quorum.
type Election interface {
	Picture(ctx context.Context, events int) (redislock.Picture, error)
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

// elections are those on the masters of a quorum. A majority's answers make one election.
type elections []Election

func (e elections) majority() int { return len(e)/2 + 1 }

// slowest is how much longer than the majority a master may take. One that hangs
// must not make every reading of the election hang.
const slowest = 250 * time.Millisecond

// AskAll asks all masters at once and returns the answers of those that answered.
// Fewer than a majority are an error.
func AskAll[T any](e elections, ask func(Election) (T, error)) ([]T, error) {
	type answer struct {
		value T
		err   error
	}
	answers := make(chan answer, len(e)) // room for all: the caller may have left
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
		return nil, fmt.Errorf("%d of the %d masters of redis.quorum answer, and it takes %d: %w",
			len(good), len(e), e.majority(), errors.Join(problems...))
	}
	return good, nil
}

// Picture is the picture that a majority agrees on. An owner that only a minority has is
// left out: its term has ended, or it has not won.
func (e elections) Picture(ctx context.Context, events int) (redislock.Picture, error) {
	pictures, err := AskAll(e, func(one Election) (redislock.Picture, error) { return one.Picture(ctx, 3*events) })
	if err != nil {
		return redislock.Picture{}, err
	}
	owner := agreed(e.majority(), pictures, func(p redislock.Picture) string { return p.Owner })
	// The newest term first; of one term, the node that has had it longest.
	slices.SortStableFunc(pictures, func(a, b redislock.Picture) int {
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
	p := pictures[0]
	if p.Owner != owner {
		p.Owner, p.Leader, p.Left = "", "", 0
	}
	if owner == "" {
		p.Leader = ""
	} else if epoch := agreed(e.majority(), pictures, func(p redislock.Picture) string { return epochOf(p, owner) }); epoch != "" {
		p.Epoch, _ = strconv.ParseInt(epoch, 10, 64) // it was made by epochOf
	}
	// One master of them does not keep a majority from leading, but has to be put right, too.
	p.Forged = slices.ContainsFunc(pictures, func(p redislock.Picture) bool { return p.Forged })
	p.Nodes = mergeNodes(pictures)
	p.Events = settled(p.Events, events)
	p.Control = e.control(pictures, p.Control)
	return p, nil
}

// epochOf is the epoch of an owner's term on one master. A master that granted the term after
// it was won may have a higher epoch, which belongs to no term.
func epochOf(p redislock.Picture, owner string) string {
	if p.Owner != owner {
		return ""
	}
	return strconv.FormatInt(p.Epoch, 10)
}

// control is what enough masters say that no node can win against it.
func (e elections) control(pictures []redislock.Picture, c redislock.Control) redislock.Control {
	c.Paused, c.Quarantine, c.StepDown = nil, 0, ""
	var paused []*redislock.Pause
	var quarantines []time.Duration
	for _, p := range pictures {
		if p.Paused != nil {
			paused = append(paused, p.Paused)
		}
		if p.Quarantine > 0 {
			quarantines = append(quarantines, p.Quarantine)
		}
		if p.StepDown != "" {
			c.StepDown = p.StepDown // the leader obeys whichever master says so
		}
	}
	against := len(e) - e.majority() + 1
	if len(paused) >= against {
		c.Paused = paused[0]
	}
	if len(quarantines) >= against {
		slices.Sort(quarantines)
		c.Quarantine = quarantines[len(quarantines)-against] // then enough of them are over
	}
	return c
}

// agreed returns the text that at least enough pictures have, or "".
func agreed(enough int, pictures []redislock.Picture, of func(redislock.Picture) string) string {
	count := map[string]int{}
	for _, p := range pictures {
		if text := of(p); text != "" {
			if count[text]++; count[text] >= enough {
				return text
			}
		}
	}
	return ""
}

// mergeNodes takes of every node its last registration. Each master dates it by its own
// clock, so the dates are converted to the clock of the first master.
func mergeNodes(pictures []redislock.Picture) []redislock.Node {
	latest := map[string]redislock.Node{}
	for _, p := range pictures {
		for _, n := range p.Nodes {
			n.SeenMS += pictures[0].Now.Sub(p.Now).Milliseconds()
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

// settled leaves out the terms that one master granted and no majority did: each is
// a win, followed by its withdrawal. events are newest first; it returns at most n.
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

// StepDown asks the leader by way of every master: it obeys whichever it hears of. A master
// that is slow may hear of it only when the successor holds the lock there.
func (e elections) StepDown(ctx context.Context, to, reason string) (owner, nodeID string, err error) {
	p, err := e.Picture(ctx, 0)
	if err != nil {
		return "", "", err
	}
	if p.Owner == "" {
		return "", "", redislock.ErrNoLeader
	}
	return p.Owner, p.Leader, e.StepDownOwner(ctx, p.Owner, elector.Order{To: to, Reason: reason})
}

// StepDownOwner asks the leader of one term by way of every master.
func (e elections) StepDownOwner(ctx context.Context, owner string, o elector.Order) error {
	return e.all(func(one Election) error {
		err := one.StepDownOwner(ctx, owner, o)
		if errors.Is(err, redislock.ErrNoLeader) {
			return nil // this master has not granted the term, or has granted the next one
		}
		return err
	})
}

// Pause pauses all of them, and has succeeded when a majority is.
func (e elections) Pause(ctx context.Context, reason string) (*redislock.Pause, error) {
	return e.pauses(func(one Election) (*redislock.Pause, error) { return one.Pause(ctx, reason) })
}

// Resume ends the pause on all of them.
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

// SetCoolDown informs all of them.
func (e elections) SetCoolDown(ctx context.Context, nodeID string, d time.Duration, reason string) error {
	return e.all(func(one Election) error { return one.SetCoolDown(ctx, nodeID, d, reason) })
}

// Forget takes the nodes off every list.
func (e elections) Forget(ctx context.Context, nodes []redislock.Node, before time.Time) error {
	return e.all(func(one Election) error { return one.Forget(ctx, nodes, before) })
}

func (e elections) all(ask func(Election) error) error {
	_, err := AskAll(e, func(one Election) (struct{}, error) { return struct{}{}, ask(one) })
	return err
}
