package operate

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"
)

// wireOrder is an order as the API takes it: the values that stand in the path are not in it.
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
}

// path is where the API takes an order.
func (o Order) path() []string {
	ofJob := func(what string) []string {
		if o.Job == "" {
			return []string{"jobs", what}
		}
		return []string{"jobs", o.Job, what}
	}
	switch o.Kind {
	case KindRun, KindCancel, KindVerify, KindBackfill:
		return ofJob(string(o.Kind))
	case KindPauseJob:
		return ofJob("pause")
	case KindResumeJob:
		return ofJob("resume")
	case KindReplay, KindDrop:
		return []string{"dead-letters", string(o.Kind)}
	case KindTestNotify:
		return []string{"notifications", "test"}
	}
	return []string{string(o.Kind)}
}

// atOnce are as many letters as a node deals with within what an order gets.
func (o Order) atOnce() int {
	const replayed, dropped = 20, 500
	if o.Kind == KindReplay {
		return replayed
	}
	return dropped
}

// Do has the node carry out an order. One for many letters is given in parts.
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

// and is an outcome with that of a further part of the order.
func (o Outcome) and(part Outcome) Outcome {
	part.Letters = append(o.Letters, part.Letters...)
	part.Dropped += o.Dropped
	return part
}

// repeatFor is how long an order is given again whose reply was lost: about as long as a node takes to restart.
const repeatFor = 10 * time.Second

// run has a job run. If the reply is lost it asks again for the same run.
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
			return out, fmt.Errorf("whether %s %s of job %q began is not known; baton job show %[3]s tells: %w",
				o.Kind, o.RunID, o.Job, err)
		}
		select {
		case <-ctx.Done():
			return out, ctx.Err()
		case <-time.After(watchEvery):
		}
	}
}

// newRunID makes a UUID of version 4.
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
		Sample: o.Sample, Rate: o.Rate, Repair: o.Repair, Examples: o.Examples,
	}
	const most = 90 * time.Second // that the API waits
	if o.Wait != 0 {
		body.Wait = min(max(o.Wait, 0), most).String()
	}
	out, err := c.give(ctx, body, o.path()...)
	if p, ok := errors.AsType[*problem](err); ok && len(p.kinds) == 0 && o.Kind == KindReload {
		return out, fmt.Errorf("not reloaded, the old configuration stays in force:\n%w", err)
	}
	return out, err
}
