package page

import (
	"fmt"
	"time"

	"baton/internal/diagnose"
	"baton/internal/text"
)

type nodeView struct {
	ID, State, Version, Config, Address    string
	Priority, Aside, Clock                 string
	Seen                                   instant
	Tone                                   tone
	Here, Leads, OtherVersion, OtherConfig bool
	ClockOff, Silent                       bool
}

func newNodeView(n diagnose.Node, s diagnose.Snapshot, now time.Time) nodeView {
	v := nodeView{
		ID: n.ID, State: words(n.Word()), Version: n.Version, Config: n.ConfigHash, Address: n.Address, Tone: idle,
		Seen: seen(n, s, now), Here: n.ID == s.NodeID,
		Leads: s.Error == "" && s.Leader != nil && !s.Leader.Foreign && s.Leader.NodeID == n.ID,
	}
	if n.Priority != 0 {
		v.Priority = fmt.Sprintf("priority %d", n.Priority)
	}
	if offset := n.ClockOffset(); offset.Abs() >= clockShown {
		v.Clock, v.ClockOff = text.Span(offset.Abs())+" "+map[bool]string{true: "ahead", false: "behind"}[offset > 0], n.IsClockOff()
	}
	if n.Twin != "" {
		v.Tone, v.Aside = bad, "Another process has the same node.id: the two cannot be told apart. Stop one of them."
	}
	if n.Aside != "" {
		v.Aside = "Stands aside " + clip(n.Aside)
	}
	const shortHash = 8
	if len(v.Config) > shortHash {
		v.Config = v.Config[:shortHash]
	}
	v.Silent = n.Silent()
	switch {
	case v.Silent && n.Led:
		v.Tone, v.Aside = bad, "It led, and has not reported since."
	case v.Silent:
		v.Tone = bad
	case v.Leads:
		v.Tone = good
	case n.Observer:
	case n.State == string(diagnose.RoleStandby):
		v.Tone = busy
	}
	v.OtherConfig = s.Drifted(n)
	for _, other := range s.Nodes {
		if s.Leader != nil && other.ID == s.Leader.NodeID {
			v.OtherVersion = n.Version != other.Version
		}
	}
	return v
}
