package work

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"baton/internal/daemon/site"
	"baton/internal/job"
	"baton/internal/job/schedule"
	"baton/internal/redisledger"
)

// scheduledEvery is the pause between two checks whether a verification is due.
const scheduledEvery = time.Second

// scheduleVerifications orders, until ctx ends, every verification that the configuration schedules, when its slot is due. If several slots
// of a verification passed while no node led, one verification makes up for all of them.
func (t *Term) scheduleVerifications(ctx context.Context, tasks []boundTask) {
	due := map[string]*verification{}
	for _, b := range tasks {
		slots, err := b.task.verifications()
		if err != nil {
			t.Log.Error("verifications cannot be scheduled", zap.String("job", b.job.Name), zap.Error(err)) // the configuration was checked
		} else if slots != nil {
			due[b.job.Name] = &verification{boundTask: b, slots: slots}
		}
	}
	for len(due) > 0 && ctx.Err() == nil {
		for _, v := range due {
			if err := t.orderIfDue(ctx, v); err != nil && ctx.Err() == nil {
				t.Log.Debug("a scheduled verification could not be ordered; the order is "+
					"tried again", zap.String("job", v.job.Name), zap.Error(err))
			}
		}
		_ = Rest(ctx, scheduledEvery)
	}
}

// verification is a job with a schedule for verifications, which compare the job's rows.
type verification struct {
	boundTask
	slots schedule.Schedule
	next  time.Time // zero: unknown yet
}

// verifications returns the schedule of the job's verifications, or nil if the job has no such schedule.
func (t Task) verifications() (schedule.Schedule, error) {
	if t.Config.IsCommand() || t.Config.Flush.Verify.Schedule == "" {
		return nil, nil
	}
	return schedule.ParseIn(t.Config.Flush.Verify.Schedule, t.Config.TimeZone)
}

// orderIfDue gives the order for a verification if its slot has come.
func (t *Term) orderIfDue(ctx context.Context, v *verification) error {
	now := time.Now()
	if v.next.IsZero() {
		last, err := t.lastScheduled(ctx, v.job.Name)
		if err != nil {
			return err
		}
		if v.next = v.slots.Next(now); !last.IsZero() {
			v.next = v.slots.Next(last)
		}
	}
	if v.next.IsZero() || now.Before(v.next) {
		return nil
	}
	id, err := site.NewID()
	if err != nil {
		return err
	}
	configured := v.task.Config.Flush.Verify
	part, _ := configured.Part() // the configuration was checked
	if part == 1 {
		part = 0 // all of them
	}
	ctx, cancel := context.WithTimeout(ctx, recordWithin)
	defer cancel()
	err = t.Ledger.AskOperation(ctx, redisledger.Operation{
		Job: v.job.Name, ID: id, Kind: redisledger.KindVerify, By: "by schedule", Trigger: string(job.TriggerSchedule), Asked: now.UTC(),
		Sample: part, Rate: configured.Rate, Slot: v.next,
	})
	if errors.Is(err, redisledger.ErrAsked) {
		err = nil // a verification is in progress, and the next slot will come
	}
	if err == nil {
		v.next = v.slots.Next(now)
	}
	return err
}

// lastScheduled returns when a verification of a job was last ordered by the job's schedule. It returns zero if that time is unknown.
func (t *Term) lastScheduled(ctx context.Context, name string) (last time.Time, err error) {
	ctx, cancel := context.WithTimeout(ctx, recordWithin)
	defer cancel()
	states, err := t.Ledger.Jobs(ctx, []string{name})
	if err != nil {
		return last, err
	}
	const wrongClock = 24 * time.Hour // a time that is further ahead is from a host with a wrong clock
	if last = states[0].VerifiedUntil; time.Until(last) > wrongClock {
		last = time.Time{}
	}
	for _, s := range []*redisledger.OperationState{states[0].Operation, states[0].Verified} {
		if s != nil && s.Trigger == string(job.TriggerSchedule) && s.Asked.After(last) {
			last = s.Asked
		}
	}
	return last, nil
}
