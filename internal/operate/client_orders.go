package operate

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// wireOrder is an order as the API takes it: what the path says is not in it.
type wireOrder struct {
	By        string             `json:"by,omitzero"`
	Reason    string             `json:"reason,omitzero"`
	Lock      string             `json:"lock,omitzero"`
	To        string             `json:"to,omitzero"`
	Wait      string             `json:"wait,omitzero"`
	Force     bool               `json:"force,omitzero"`
	RunID     string             `json:"run_id,omitzero"`
	Until     time.Time          `json:"until,omitzero"`
	Letters   []LetterKey        `json:"letters,omitempty"`
	Overwrite bool               `json:"overwrite,omitzero"`
	Set       map[string]*string `json:"set,omitempty"`
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
	case KindRun, KindCancel:
		return ofJob(string(o.Kind))
	case KindPauseJob:
		return ofJob("pause")
	case KindResumeJob:
		return ofJob("resume")
	case KindReplay, KindDrop:
		return []string{"dead-letters", string(o.Kind)}
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
	if o.Kind != KindReplay && o.Kind != KindDrop {
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

func (c *Client) doOnce(ctx context.Context, o Order) (Outcome, error) {
	body := wireOrder{
		By: o.By, Reason: o.Reason, Lock: o.Lock, To: o.To, Force: o.Force, RunID: o.RunID, Until: o.Until,
		Letters: o.Letters, Overwrite: o.Overwrite, Set: o.Set,
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
