package direct

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
)

// orderWait is how long Do waits for the effect of an order whose field Wait is not set.
const orderWait = 30 * time.Second

// Do carries out an order.
func (s *Site) Do(ctx context.Context, o operate.Order) (operate.Outcome, error) {
	out, err := s.carryOut(ctx, o)
	return out, refusedUnlessAway(coded(err))
}

func (s *Site) carryOut(ctx context.Context, o operate.Order) (operate.Outcome, error) {
	switch o.Kind {
	case operate.KindReload:
		return s.reload(ctx, o)
	case operate.KindTestNotify:
		return s.testNotify(ctx, o)
	case operate.KindReplay, operate.KindDrop:
		return reading(ctx, s, func(d *deadLetters) (operate.Outcome, error) { return d.deal(ctx, o) })
	}
	l, err := s.session().of(o.Lock)
	if err != nil {
		return operate.Outcome{}, err
	}
	wait := o.Wait
	if wait == 0 {
		wait = orderWait
	}
	wait = max(wait, 0)
	switch o.Kind {
	case operate.KindStepDown:
		return stepDown(ctx, l, o, wait)
	case operate.KindPause:
		return pause(ctx, l, o, wait)
	case operate.KindResume:
		return resume(ctx, l, o, wait)
	case operate.KindRun:
		return runJob(ctx, l, o)
	case operate.KindCancel:
		return cancelJob(ctx, l, o)
	case operate.KindVerify, operate.KindBackfill:
		return startOperation(ctx, l, o)
	case operate.KindUndelete:
		return s.undelete(ctx, l, o)
	case operate.KindAccept:
		return s.accept(ctx, l, o)
	case operate.KindPauseJob:
		return pauseJob(ctx, l, o)
	case operate.KindResumeJob:
		return resumeJob(ctx, l, o)
	}
	return operate.Outcome{}, fmt.Errorf("%w: there is no action %q", operate.ErrInvalid, o.Kind)
}

// refusedUnlessAway marks an error as a refusal, unless the cause is a server that did not answer.
func refusedUnlessAway(err error) error {
	var coded *operate.Coded
	var network net.Error
	switch {
	case err == nil, errors.As(err, &coded), errors.Is(err, operate.ErrInvalid), errors.Is(err, operate.ErrRefused):
		return err
	case errors.As(err, &network), errors.Is(err, io.EOF), errors.Is(err, flush.ErrTransient):
		return err
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return err
	}
	return &operate.Coded{Code: "refused", Kind: operate.ErrRefused, Err: err}
}

// reloadWithin is the maximum time that a reload may take.
const reloadWithin = 20 * time.Second

// testNotify makes the node send a test notification, and returns the outcome of each target.
func (s *Site) testNotify(ctx context.Context, o operate.Order) (operate.Outcome, error) {
	if s.node.TestNotify == nil {
		return operate.Outcome{}, fmt.Errorf("%w: there is no daemon here to send a notification", operate.ErrInvalid)
	}
	tests, err := s.node.TestNotify(ctx, o.Target, o.Signature())
	if err != nil {
		return operate.Outcome{}, err
	}
	id := s.node.Access().Config.Node.ID
	said := make([]string, len(tests))
	for i, t := range tests {
		said[i] = t.Target + " accepted it"
		if !t.OK {
			said[i] = t.Target + " did not accept it: " + t.Text
		}
	}
	text := "test notification sent by " + id + ": " + strings.Join(said, "; ")
	return operate.Outcome{Code: operate.CodeDone, Text: text, NodeID: id, Tests: tests}, nil
}

// reload makes the node read its configuration again.
func (s *Site) reload(ctx context.Context, o operate.Order) (operate.Outcome, error) {
	if s.node.Reload == nil {
		return operate.Outcome{}, fmt.Errorf("%w: there is no daemon here to reload", operate.ErrInvalid)
	}
	ctx, cancel := context.WithTimeout(ctx, reloadWithin)
	defer cancel()
	if err := s.node.Reload(ctx, o.Signature()); err != nil {
		return operate.Outcome{}, err
	}
	return operate.Outcome{Code: operate.CodeDone, Text: "the configuration was reloaded", NodeID: s.node.Access().Config.Node.ID}, nil
}
