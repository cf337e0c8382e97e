package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"baton/internal/flush"
	"baton/internal/operate"
	"baton/internal/status"
)

// do carries out an order that the page or the API was given.
func (d *desk) do(ctx context.Context, o operate.Order) (operate.Outcome, error) {
	out, err := d.carryOut(ctx, o)
	if out.Text == "" && err == nil {
		out.Text = "done"
	}
	return out, refusedUnlessAway(d.coded(err))
}

func (d *desk) carryOut(ctx context.Context, o operate.Order) (operate.Outcome, error) {
	wait := o.Wait
	if wait == 0 {
		wait = orderWait
	}
	wait = max(wait, 0)
	switch o.Kind {
	case operate.KindReload:
		return d.reload(ctx, o)
	case operate.KindReplay, operate.KindDrop:
		return d.letters(ctx, o)
	}
	r, err := d.remote().lockOf(o.Lock)
	if err != nil {
		return operate.Outcome{}, err
	}
	switch o.Kind {
	case operate.KindStepDown:
		return stepDown(ctx, r, o, wait)
	case operate.KindPause:
		return pause(ctx, r, o, wait)
	case operate.KindResume:
		return resume(ctx, r, o, wait)
	case operate.KindRun:
		return runJob(ctx, r, o)
	case operate.KindCancel:
		return cancelJob(ctx, r, o)
	case operate.KindPauseJob:
		return pauseJob(ctx, r, o)
	case operate.KindResumeJob:
		return resumeJob(ctx, r, o)
	}
	return operate.Outcome{}, fmt.Errorf("%w: there is no action %q", operate.ErrInvalid, o.Kind)
}

// refusedUnlessAway tells what was decided from servers that do not answer.
func refusedUnlessAway(err error) error {
	var coded *operate.Coded
	var network net.Error
	switch {
	case err == nil, errors.As(err, &coded), errors.Is(err, operate.ErrInvalid), errors.Is(err, operate.ErrRefused):
		return err
	case errors.As(err, &network), errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled), errors.Is(err, io.EOF), errors.Is(err, flush.ErrTransient):
		return err
	}
	return &operate.Coded{Code: "refused", Kind: operate.ErrRefused, Err: err}
}

func stepDown(ctx context.Context, r *Remote, o operate.Order, wait time.Duration) (operate.Outcome, error) {
	h, err := r.StepDown(ctx, o.To, "asked "+o.By, wait)
	out := operate.Outcome{From: h.From, NodeID: h.To, Epoch: h.Epoch, TookMS: h.TookMS}
	switch {
	case err != nil:
	case h.To == "":
		out.Text = h.From + " was asked to step down"
	default:
		out.Text = fmt.Sprintf("%s leads after %s: epoch %d, %d ms after the order", h.To, h.From, h.Epoch, h.TookMS)
	}
	return out, err
}

func pause(ctx context.Context, r *Remote, o operate.Order, wait time.Duration) (operate.Outcome, error) {
	p, err := r.Pause(ctx, o.By, wait)
	out := operate.Outcome{From: p.Leader, Since: p.Since, TookMS: p.TookMS}
	if p.Already != "" {
		out.Was = &status.Pause{Since: p.Since, Reason: p.Already}
	}
	if err != nil {
		return out, err
	}
	out.Text = "paused: nobody leads"
	if p.Leader != "" && wait <= 0 {
		out.Text = "paused: " + p.Leader + " was told to stop"
	} else if p.Leader != "" {
		out.Text = fmt.Sprintf("paused: nobody leads, %d ms after the order; %s did", p.TookMS, p.Leader)
	}
	return out, nil
}

func resume(ctx context.Context, r *Remote, o operate.Order, wait time.Duration) (operate.Outcome, error) {
	d, err := r.Resume(ctx, o.By, wait)
	out := operate.Outcome{NodeID: d.Leader, Epoch: d.Epoch, TookMS: d.TookMS, Text: "it was not paused"}
	if d.Was != "" {
		out.Was = &status.Pause{Since: d.Since, Reason: d.Was}
		out.Text = "resumed"
	}
	if d.Leader != "" {
		out.Text = fmt.Sprintf("resumed: %s leads, epoch %d, %d ms after the order", d.Leader, d.Epoch, d.TookMS)
	}
	return out, err
}

func runJob(ctx context.Context, r *Remote, o operate.Order) (operate.Outcome, error) {
	run, err := r.RunJob(ctx, o.Job, o.By, o.Force)
	if err != nil {
		return operate.Outcome{}, err
	}
	out := operate.Outcome{RunID: run.Run.ID, NodeID: run.Run.NodeID, Epoch: run.Run.Epoch, Queued: run.Queued, Run: &run.Run}
	out.Text = fmt.Sprintf("run %s of job %q has begun on %s", run.Run.ID, run.Job, run.Run.NodeID)
	if run.Queued {
		out.Text = fmt.Sprintf("run %s of job %q waits for another one to end", run.Run.ID, run.Job)
	}
	return out, nil
}

func cancelJob(ctx context.Context, r *Remote, o operate.Order) (operate.Outcome, error) {
	c, err := r.CancelJob(ctx, o.Job, o.RunID, o.By)
	if err != nil {
		return operate.Outcome{}, err
	}
	out := operate.Outcome{Runs: c.Runs, Retry: c.Retry}
	var told []string
	for _, id := range c.Runs {
		told = append(told, "run "+id+" was told to end")
	}
	if c.Retry > 0 {
		told = append(told, fmt.Sprintf("attempt %d, which was to come, is dropped", c.Retry))
	}
	out.Text = strings.Join(told, "; ")
	if c.Nothing() {
		out.Text = "nothing of job " + o.Job + " runs or is to be tried again: nothing was cancelled"
	}
	return out, nil
}

func pauseJob(ctx context.Context, r *Remote, o operate.Order) (operate.Outcome, error) {
	p, err := r.PauseJob(ctx, o.Job, o.By, o.Until)
	if err != nil {
		return operate.Outcome{}, err
	}
	out := operate.Outcome{Was: p.Was, Text: whichJobs(o.Job) + " paused"}
	if p.Was != nil {
		out.Text += " already; the reason is a new one"
	}
	if !o.Until.IsZero() {
		out.Text += ", until " + o.Until.In(r.Zone(o.Job)).Format("2006-01-02 15:04:05 -07:00")
	}
	return out, nil
}

func resumeJob(ctx context.Context, r *Remote, o operate.Order) (operate.Outcome, error) {
	p, err := r.ResumeJob(ctx, o.Job, o.By)
	if err != nil {
		return operate.Outcome{}, err
	}
	out := operate.Outcome{Was: p.Was, Still: p.Still, Text: whichJobs(o.Job) + " not paused"}
	if p.Was != nil {
		out.Text = whichJobs(o.Job) + " resumed"
	}
	if p.Still != nil {
		out.Text += "; but all jobs are paused " + p.Still.Reason
	}
	return out, nil
}

func whichJobs(name string) string {
	if name == "" {
		return "all jobs are"
	}
	return fmt.Sprintf("job %q is", name)
}

// letters replays dead letters, or drops them.
func (d *desk) letters(ctx context.Context, o operate.Order) (operate.Outcome, error) {
	return reading(ctx, d, func(dead *Dead) (operate.Outcome, error) {
		keys := o.Letters
		if o.Letter != "" {
			l, err := dead.Find(ctx, o.Letter, o.Database)
			if err != nil {
				return operate.Outcome{}, err
			}
			keys = []DeadKey{l.DeadKey}
		}
		for _, k := range keys {
			if dead.dbs[k.Database] == nil {
				return operate.Outcome{}, fmt.Errorf("%w: there is no database %q in the configuration", ErrDeadUsage, k.Database)
			}
		}
		if o.Kind == operate.KindDrop {
			n, err := dead.Drop(ctx, keys, nil)
			return operate.Outcome{Dropped: n, Text: fmt.Sprintf("%d of %d dead letters dropped", n, len(keys))}, err
		}
		out, ok := operate.Outcome{}, 0
		err := dead.Replay(ctx, keys, ReplayOptions{Overwrite: o.Overwrite, Set: o.Set}, func(r Replayed) {
			out.Letters = append(out.Letters, r)
			if r.OK {
				ok++
			}
		})
		out.Text = fmt.Sprintf("%d of %d dead letters replayed", ok, len(keys))
		if len(out.Letters) == 1 {
			out.Text = out.Letters[0].Outcome + ": " + out.Letters[0].Text
		}
		return out, err
	})
}

// reloadWithin is how long whoever asks for a reload waits.
const reloadWithin = 20 * time.Second

// reload has the node read its configuration again.
func (d *desk) reload(ctx context.Context, o operate.Order) (operate.Outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, reloadWithin)
	defer cancel()
	answer := make(chan error, 1)
	select {
	case d.node.reloadRequests <- reloadRequest{by: o.By, answer: answer}:
	case <-ctx.Done():
		return operate.Outcome{}, errors.New("the daemon does not take it: it is busy or about to end; see its log")
	}
	select {
	case err := <-answer:
		if err != nil {
			return operate.Outcome{}, &operate.Coded{Code: "not_reloaded", Kind: operate.ErrInvalid, Err: err}
		}
		return operate.Outcome{Text: "the configuration was reloaded", NodeID: d.node.id}, nil
	case <-ctx.Done():
		return operate.Outcome{}, errors.New("the daemon is still at it; see its log")
	}
}
