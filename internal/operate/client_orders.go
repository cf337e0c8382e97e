package operate

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// wireOrder is an order in the form that the API accepts, without the values that are in the path.
type wireOrder struct {
	By        string             `json:"by,omitzero"`
	Reason    string             `json:"reason,omitzero"`
	Lock      string             `json:"lock,omitzero"`
	To        string             `json:"to,omitzero"`
	Wait      string             `json:"wait,omitzero"`
	Force     bool               `json:"force,omitzero"`
	RunID     string             `json:"run_id,omitzero"`
	Until     time.Time          `json:"until,omitzero"`
	Target    string             `json:"target,omitzero"`
	Letters   []LetterKey        `json:"letters,omitempty"`
	Overwrite bool               `json:"overwrite,omitzero"`
	Set       map[string]*string `json:"set,omitempty"`
	Sample    float64            `json:"sample,omitzero"`
	Rate      int                `json:"rate,omitzero"`
	Repair    bool               `json:"repair,omitzero"`
	Examples  int                `json:"examples,omitzero"`
	Changes   int64              `json:"changes,omitzero"`
	Deletes   int64              `json:"deletes,omitzero"`
	Database  string             `json:"database,omitzero"`
}

// path returns the API's path for an order.
func (o Order) path() []string {
	ofJob := func(what string) []string {
		if o.Job == "" {
			return []string{"jobs", what}
		}
		return []string{"jobs", o.Job, what}
	}
	switch o.Kind {
	case KindRun, KindCancel, KindVerify, KindBackfill, KindAccept:
		return ofJob(string(o.Kind))
	case KindPauseJob:
		return ofJob("pause")
	case KindResumeJob:
		return ofJob("resume")
	case KindReplay, KindDrop:
		return []string{"dead-letters", string(o.Kind)}
	case KindUndelete:
		return []string{"deleted-rows", strconv.FormatInt(o.Row, 10), "undelete"}
	case KindTestNotify:
		return []string{"notifications", "test"}
	}
	return []string{string(o.Kind)}
}

// atOnce returns how many letters one order may contain, so that a node can handle them within the time limit of an order.
func (o Order) atOnce() int {
	const replayed, dropped = 20, 500
	if o.Kind == KindReplay {
		return replayed
	}
	return dropped
}

// Do makes the node carry out an order. It splits an order for many letters into several orders.
func (c *Client) Do(ctx context.Context, o Order) (out Outcome, err error) {
	switch o.Kind {
	case KindReplay, KindDrop:
	case KindRun, KindVerify, KindBackfill:
		return c.run(ctx, o)
	default:
		return c.doOnce(ctx, o)
	}
	for letters := o.Letters; len(letters) > 0; letters = letters[len(o.Letters):] {
		o.Letters = letters[:min(o.atOnce(), len(letters))]
		part, err := c.doOnce(ctx, o)
		out = out.and(part)
		if err != nil {
			return out, err
		}
		if o.Progress != nil {
			o.Progress(part)
		}
	}
	return out, nil
}

// The method and combines the outcome of an order with the outcome of a further part of the same order.
func (o Outcome) and(part Outcome) Outcome {
	part.Letters = append(o.Letters, part.Letters...)
	part.Dropped += o.Dropped
	return part
}

// repeatFor is how long an order is repeated after its reply was lost. A node needs about that long to restart.
const repeatFor = 10 * time.Second

// run makes the node run a job. If the reply is lost, run sends the order again for the same run.
func (c *Client) run(ctx context.Context, o Order) (out Outcome, err error) {
	if o.RunID == "" {
		o.RunID = newRunID()
	}
	sent := false
	for end := time.Now().Add(repeatFor); ; {
		out, err = c.doOnce(ctx, o)
		sent = sent || errors.Is(err, errNoReply)
		if !sent || !errors.Is(err, ErrNoServer) {
			return out, err
		}
		if time.Now().After(end) {
			return out, fmt.Errorf("it is unknown whether %s %s of job %q began; see baton job show %[3]s: %w",
				o.Kind, o.RunID, o.Job, err)
		}
		select {
		case <-ctx.Done():
			return out, ctx.Err()
		case <-time.After(watchEvery):
		}
	}
}

// newRunID returns a UUID of version 4.
func newRunID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

func (c *Client) doOnce(ctx context.Context, o Order) (Outcome, error) {
	body := wireOrder{
		By: o.By, Reason: o.Reason, Lock: o.Lock, To: o.To, Force: o.Force, RunID: o.RunID, Until: o.Until,
		Letters: o.Letters, Target: o.Target, Overwrite: o.Overwrite, Set: o.Set,
		Sample: o.Sample, Rate: o.Rate, Repair: o.Repair, Examples: o.Examples, Changes: o.Changes, Deletes: o.Deletes,
		Database: o.Database,
	}
	const most = 90 * time.Second // the maximum time that the API waits
	if o.Wait != 0 {
		body.Wait = min(max(o.Wait, 0), most).String()
	}
	out, err := c.give(ctx, body, o.path()...)
	if p, ok := errors.AsType[*problem](err); ok && len(p.kinds) == 0 && o.Kind == KindReload {
		return out, fmt.Errorf("the configuration was not reloaded; the old configuration stays in force:\n%w", err)
	}
	return out, err
}
