package page

import (
	"context"
	"fmt"
	"net/url"
	"strconv"

	"baton/internal/operate"
	"baton/internal/text"
)

// acceptedCounts returns the counts that the acceptance form has shown to the user.
func acceptedCounts(form url.Values) (changes, deletes int64) {
	changes, _ = strconv.ParseInt(form.Get("changes"), 10, 64) // 0 means that the order is refused if any row waits
	deletes, _ = strconv.ParseInt(form.Get("deletes"), 10, 64)
	return changes, deletes
}

// toAccept adds the counts of waiting rows to an order to accept rows. The result after says which rows belong to the job after the
// acceptance. If there is nothing to confirm, the message in the result why gives the reason.
func (p *Pages) toAccept(ctx context.Context, o *operate.Order) (after string, why message) {
	if o.Kind != operate.KindAccept || o.Job == "" || p.Node == nil {
		return "", message{}
	}
	a, err := p.Node.Acceptance(ctx, o.Job)
	why = message{Tone: warn, Heading: "Nothing to accept", Back: jobURL(o.Job)}
	switch {
	case err != nil:
		why.Heading, why.Text = "The waiting rows are unknown", sentence(err.Error())
	case a.State == operate.RowsWait:
		o.Changes, o.Deletes = a.Changes, a.Deletes
		after = fmt.Sprintf(" After that every row of %s in table %s belongs to the job. ", a.Keys, a.Table)
		if a.Ordered {
			return after + "Then order the backfill or the repair again: it changes and deletes no more rows than it " +
				"counted now.", message{}
		}
		return after + "Within a minute another pass begins, which changes and deletes no more rows than these.", message{}
	case a.State == operate.RowsAccepted:
		why.Text = clip(visible(a.By)) + " has accepted the rows: " + a.Writes() + " writes them."
	default:
		why.Text = "No row waits: " + o.Job + " found no such row, or adopt in its configuration decides."
	}
	return "", why
}

// confirmAcceptance adds the explanation of an acceptance to a confirmation. The form contains the counts that it shows, so that the order
// is refused if more rows wait when the form arrives.
func confirmAcceptance(c *confirmation, o operate.Order) {
	c.Heading, c.Button, c.Danger, c.Command = "Accept the rows of "+o.Job+"?", "Accept", o.Deletes > 0, "baton job accept "+o.Job
	c.What = fmt.Sprintf("The table has rows that %s never wrote. baton would change %s and delete %s, within max_pct, and has left these "+
		"rows unchanged; baton job preview %s --all shows them.", o.Job, text.Count(o.Changes, "row"), text.Count(o.Deletes, "row"), o.Job)
	c.Fields["changes"], c.Fields["deletes"] = fmt.Sprint(o.Changes), fmt.Sprint(o.Deletes)
}
