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

// standing returns a digest of the state that an order refers to, for example of the present leader. The form that confirms the order
// contains the digest. If the digest has changed when the form arrives, the user has confirmed the order for another state. "" means that
// the order does not depend on any state.
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

// byNow returns a text about the present state, for example which node leads now. The text is for a user who has confirmed an order for an
// earlier state.
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

// confirmURL returns the address of the form where the user can confirm the order o.
func confirmURL(o operate.Order) string {
	return orderURL(o.Kind, "job", o.Job, "run", o.RunID, "letter", o.Letter)
}

// againURL returns the address where the user can confirm the order of a form once more, after the form was refused.
func againURL(o operate.Order, form url.Values) string {
	if group := form.Get("group"); group != "" {
		return orderURL(o.Kind, "group", group)
	}
	return confirmURL(o)
}

// submissions ensures that the order of each form is carried out only once. The user may press the button twice, or go back and send the
// form again.
type submissions struct {
	mu   sync.Mutex
	list []*submission
}

// submission is one form that was sent, with the outcome of its order.
type submission struct {
	once     string
	done     chan struct{} // closed when the order has been carried out
	location string        // the address of the page with the outcome
}

// turnsKept is the maximum number of submissions in memory.
const turnsKept = 256

// claim returns the submission of a form. The argument once identifies the form. The result first is false if this form was already sent
// before.
func (k *submissions) claim(once string) (t *submission, first bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, t := range k.list {
		if once != "" && t.once == once {
			return t, false
		}
	}
	t = &submission{once: once, done: make(chan struct{})}
	k.list = append(k.list, t)
	k.list = k.list[max(len(k.list)-turnsKept, 0):]
	return t, true
}

// finish ends a submission. If the argument final is false, the order was not carried out, and the user may send the form again.
func (k *submissions) finish(t *submission, location string, final bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	t.location = location
	close(t.done)
	if !final {
		k.list = slices.DeleteFunc(k.list, func(other *submission) bool { return other == t })
	}
}
