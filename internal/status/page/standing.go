package page

import (
	"cmp"
	"net/url"
	"slices"
	"strings"
	"sync"

	"baton/internal/diagnose"
	"baton/internal/operate"
)

// standing returns the state that an order applies to. The form carries it. If it has changed
// when the form arrives, the user has confirmed something else. "": that state cannot change.
func standing(o operate.Order, s diagnose.Snapshot) string {
	var about []string
	switch o.Kind {
	case operate.KindStepDown, operate.KindPause, operate.KindResume:
		if s.Leader != nil {
			about = append(about, "led by "+s.Leader.NodeID, s.Leader.Owner)
		}
		if s.Paused != nil {
			about = append(about, "paused "+s.Paused.Since.UTC().String())
		}
	case operate.KindCancel, operate.KindPauseJob, operate.KindResumeJob:
		for _, j := range s.Jobs {
			if o.Kind == operate.KindCancel && j.Name == o.Job && o.RunID == "" {
				for _, r := range runsOf(j) {
					about = append(about, "run "+r.ID)
				}
			}
			if p := j.Paused; o.Kind != operate.KindCancel && p != nil && (j.Name == o.Job || o.Job == "" && p.All) {
				about = append(about, "paused "+p.Since.UTC().String()+p.Until.UTC().String())
			}
		}
	default:
		return ""
	}
	slices.Sort(about)
	return digest(strings.Join(slices.Compact(about), "\n"))[:16]
}

// byNow says how the state of an order has changed.
func byNow(o operate.Order, s diagnose.Snapshot) string {
	switch {
	case o.Kind == operate.KindCancel:
		return "of " + o.Job + " not the same runs go on"
	case o.Kind == operate.KindPauseJob || o.Kind == operate.KindResumeJob:
		return "somebody has paused or resumed it"
	case s.Paused != nil:
		return "the election is paused " + clip(s.Paused.Reason)
	case s.Leader == nil:
		return "no node leads"
	}
	return cmp.Or(s.Leader.NodeID, "another client") + " leads"
}

// confirmURL returns the address of the form that confirms an order.
func confirmURL(o operate.Order) string {
	return orderURL(o.Kind, "job", o.Job, "run", o.RunID, "letter", o.Letter)
}

// againURL returns the address to confirm the order of a form again.
func againURL(o operate.Order, form url.Values) string {
	if group := form.Get("group"); group != "" {
		return orderURL(o.Kind, "group", group)
	}
	return confirmURL(o)
}

// turns lets each form be carried out only once, even if the user presses the button twice
// or goes back and sends the form again.
type turns struct {
	mu   sync.Mutex
	list []*turn
}

// turn is the one time that a form is carried out.
type turn struct {
	once     string
	done     chan struct{} // closed at its end
	location string        // of the page with the outcome
}

// turnsKept bounds the forms in memory.
const turnsKept = 256

// claim gives a form its turn. first is false if the form was or is being carried out.
func (k *turns) claim(once string) (t *turn, first bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, t := range k.list {
		if once != "" && t.once == once {
			return t, false
		}
	}
	t = &turn{once: once, done: make(chan struct{})}
	k.list = append(k.list, t)
	k.list = k.list[max(len(k.list)-turnsKept, 0):]
	return t, true
}

// finish ends a turn. If it is not final, nothing was done, and the form may be sent again.
func (k *turns) finish(t *turn, location string, final bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	t.location = location
	close(t.done)
	if !final {
		k.list = slices.DeleteFunc(k.list, func(other *turn) bool { return other == t })
	}
}
