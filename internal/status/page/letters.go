package page

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"baton/internal/diagnose"
	"baton/internal/operate"
	"baton/internal/text"
)

// composeLetters fills a page of dead letters. The page shows all letters, the letters of a job, or a group of letters with the same
// reason.
func (p *Pages) composeLetters(ctx context.Context, d *document, t topic, snap diagnose.Snapshot, query url.Values) {
	v, now := lettersPage{Job: query.Get("job"), Secret: !t.see}, snap.Clock()
	d.Kind, d.Title, d.Refresh, d.View = "letters", "Dead letters", 0, &v // no refresh, because a list that moves is hard to read
	if p.Node == nil {
		return
	}
	filter, group := operate.LetterFilter{Job: v.Job}, query.Get("group")
	for _, r := range p.answers.reasons.get(ctx, p.Watch) {
		if v.Job != "" && r.Job != v.Job {
			continue
		}
		g := newGroup(r, now, t.see)
		if groupID(r) == group {
			filter = operate.LetterFilter{Job: r.Job, Database: r.Database, Reason: r.Reason}
			v.Group = &g
		}
		if len(v.Groups) < groupsShown {
			v.Groups = append(v.Groups, g)
		}
	}
	if v.Group == nil {
		group = ""
	}
	page := pageNumber(query.Get("page"))
	letters, err := p.Node.Letters(ctx, filter, page*lettersShown+1)
	v.Trouble = troubleOf(v.Trouble, "Not all dead letters could be read", err)
	if more := len(letters) > page*lettersShown; more && page < lettersPages {
		v.Older = lettersURL(v.Job, group, page+1)
	} else {
		v.More = more
	}
	if page > 1 {
		v.Newer = lettersURL(v.Job, group, page-1)
	}
	from := min((page-1)*lettersShown, len(letters))
	v.Letters = newLetters(letters[from:min(from+lettersShown, len(letters))], now, t.see)
}

// replayedAtOnce and droppedAtOnce limit the number of letters in one order for a group. The limit for a replay is lower, because a replay
// writes each letter separately.
const replayedAtOnce, droppedAtOnce = 100, 500

// groupOf finds a group of dead letters. It returns false if the group no longer exists.
func (p *Pages) groupOf(ctx context.Context, id string) (operate.LetterReason, bool, error) {
	if p.Node == nil {
		return operate.LetterReason{}, false, nil
	}
	all, err := p.Node.Reasons(ctx, operate.LetterFilter{})
	at := slices.IndexFunc(all, func(r operate.LetterReason) bool { return groupID(r) == id })
	if at < 0 {
		return operate.LetterReason{}, false, err
	}
	return all[at], true, nil
}

// confirmGroup returns the confirmation form of an order for a group of dead letters.
func confirmGroup(kind operate.Kind, r operate.LetterReason) confirmation {
	c := confirmation{Back: "/dead-letters", Once: rand.Text(), Fields: map[string]string{
		"action": string(kind), "group": groupID(r), "newest": r.Newest.UTC().Format(time.RFC3339Nano),
	}}
	about := fmt.Sprintf("%s of job %s with the reason “%s”", text.Count(r.Letters, "dead letter"), r.Job, clip(visible(r.Reason)))
	if kind == operate.KindReplay {
		c.Heading, c.Button, c.Command = "Replay the group?", "Replay them", "baton dead replay --all --job "+r.Job
		c.What = about + ": their records go through the job’s flush again. What fits now is written to its table, and is no longer " +
			"a dead letter."
		c.What += atOnce(r.Letters, replayedAtOnce, "replays")
		return c
	}
	c.Heading, c.Button, c.Danger, c.Command = "Drop the group?", "Drop them for good", true, "baton dead drop --all --job "+r.Job
	c.What = about + ": their records are deleted. No copy of them exists: this cannot be undone. Later dead letters are " +
		"not dropped."
	c.What += atOnce(r.Letters, droppedAtOnce, "drops")
	return c
}

func atOnce(letters int64, most int, does string) string {
	if letters <= int64(most) {
		return ""
	}
	return fmt.Sprintf(" This %s the oldest %d: repeat it for the others.", does, most)
}

// orderOfGroup returns the order that a form confirms, for the letters that existed when the form was made. It returns false if the form is
// incomplete, or if the letters no longer exist.
func (p *Pages) orderOfGroup(r *http.Request, kind operate.Kind) (o operate.Order, c confirmation, ok bool, err error) {
	group, ok, err := p.groupOf(r.Context(), r.PostForm.Get("group"))
	newest, wrong := time.Parse(time.RFC3339Nano, r.PostForm.Get("newest"))
	if !ok || wrong != nil || kind != operate.KindReplay && kind != operate.KindDrop {
		return o, c, false, err
	}
	const all = 5000
	letters, err := p.Node.Letters(r.Context(), operate.LetterFilter{Job: group.Job, Database: group.Database, Reason: group.Reason}, all)
	letters = slices.DeleteFunc(letters, func(l operate.Letter) bool { return l.At.After(newest) })
	slices.SortStableFunc(letters, func(a, b operate.Letter) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.ID, b.ID)) })
	most := droppedAtOnce
	if kind == operate.KindReplay {
		most = replayedAtOnce
	}
	o.Kind = kind
	for _, l := range letters[:min(most, len(letters))] {
		o.Letters = append(o.Letters, l.Key())
	}
	return o, confirmGroup(kind, group), len(o.Letters) > 0, err
}
