package work

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"baton/internal/daemon/tasks"
	"baton/internal/flush"
	"baton/internal/flush/verify"
	"baton/internal/job"
	"baton/internal/redisconn"
	"baton/internal/redisledger"
)

const (
	// operationReported is how often an operation records its progress.
	operationReported = time.Second
	// operationRest is how long an operation rests after an error, at first and at most.
	operationRest, operationRestMost = time.Second, 30 * time.Second
	// operationTries is how many errors in a row end an operation without progress.
	operationTries = 20
	// recordWithin bounds Redis' time to record the state of an operation.
	recordWithin = 5 * time.Second
)

// operations carries out the verifications and backfills of a term's jobs.
type operations struct {
	*Term
	running sync.WaitGroup
	mu      sync.Mutex
	under   map[string]context.CancelFunc // by the ids of operations under way
}

// take begins new operations, and ends those that are over.
func (o *operations) take(ctx context.Context, orders []redisledger.Operation) {
	o.mu.Lock()
	defer o.mu.Unlock()
	open := map[string]bool{}
	for _, order := range orders {
		if open[order.ID] = true; o.under[order.ID] != nil {
			continue
		}
		during, stop := context.WithCancel(ctx)
		o.under[order.ID] = stop
		o.running.Go(func() {
			defer o.left(order.ID)
			o.carryOut(during, order)
		})
	}
	for id, stop := range o.under {
		if !open[id] {
			stop()
		}
	}
}

func (o *operations) left(id string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.under[id]()
	delete(o.under, id)
}

// carryOut continues an operation from its recorded state, until it is over or ctx ends.
func (o *operations) carryOut(ctx context.Context, order redisledger.Operation) {
	log := o.Log.Named("job").With(zap.String("job", order.Job), zap.String("operation", order.Kind), zap.String("run_id", order.ID))
	op, err := o.begin(ctx, order)
	if err != nil {
		log.Debug("an operation could not be begun", zap.Error(err)) // the next reading of the orders tries again
		_ = Rest(ctx, operationRest)
		return
	}
	log.Info("begun, or gone on with", zap.String("by", order.By), zap.Float64("done", op.state.Part))
	err = op.work(ctx)
	if ctx.Err() != nil || errors.Is(err, redisledger.ErrOver) {
		log.Info("left", zap.Error(err))
		return // cancelled, or the next leader continues it
	}
	op.end(ctx, err)
	log.Info("over", zap.String("state", string(op.record.State)), zap.String("result", op.record.Error))
}

// operation is an operation under way.
type operation struct {
	*operations
	b        boundTask
	record   redisledger.OperationState
	state    verify.State
	reported time.Time
}

// begin reads the recorded state of an operation.
func (o *operations) begin(ctx context.Context, order redisledger.Operation) (*operation, error) {
	ctx, cancel := context.WithTimeout(ctx, recordWithin)
	defer cancel()
	states, err := o.Ledger.Jobs(ctx, []string{order.Job})
	if err != nil {
		return nil, err
	}
	op := &operation{operations: o, record: redisledger.OperationState{Operation: order, Started: time.Now()}}
	if was := states[0].Operation; was != nil && was.ID == order.ID {
		op.record.Started = was.Started
		if err := json.Unmarshal(was.Progress, &op.state); err != nil {
			op.state = verify.State{} // from the beginning: everything may be repeated
		}
	}
	o.Term.mu.Lock()
	op.b = o.bound[order.Job]
	o.Term.mu.Unlock()
	return op, op.report(ctx, job.StateRunning)
}

// report records the state of the operation.
func (op *operation) report(ctx context.Context, state job.State) error {
	ctx, cancel := context.WithTimeout(ctx, recordWithin)
	defer cancel()
	progress, err := json.Marshal(op.state)
	if err != nil {
		return err
	}
	r := &op.record
	r.State, r.Updated, r.Progress, r.Records = state, time.Now(), progress, op.state.Result.Records
	r.NodeID, r.Owner, r.Epoch = op.term.NodeID(), op.term.Owner(), op.term.Epoch()
	op.reported = time.Now()
	if state == job.StateRunning {
		return op.Ledger.ReportOperation(ctx, *r)
	}
	r.Finished = r.Updated
	return op.Ledger.EndOperation(ctx, *r)
}

// end records the end of the operation, for as long as that takes.
func (op *operation) end(ctx context.Context, failed error) {
	state := job.StateSucceeded
	switch n := op.state.Result.Differences(); {
	case failed != nil:
		state, op.record.Error = job.StateFailed, failed.Error()
	case n > 0:
		state, op.record.Error = job.StateFailed, Differences(op.state.Result)
	}
	for ctx.Err() == nil {
		err := op.report(ctx, state)
		if err == nil || errors.Is(err, redisledger.ErrOver) {
			return
		}
		_ = Rest(ctx, operationRest)
	}
}

// Differences is "3 missing, 1 extra".
func Differences(r verify.Result) string {
	var parts []string
	for _, kind := range verify.Kinds() {
		if n := r.Count(kind); n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, kind))
		}
	}
	return strings.Join(parts, ", ")
}

// work does the operation, and continues after errors as long as it makes progress.
func (op *operation) work(ctx context.Context) error {
	rest := operationRest
	for failures := 0; ; {
		before := op.state.Place + strings.Join(op.state.Behind, "\x00")
		err := op.once(ctx)
		switch final := new(finalError); {
		case err == nil, ctx.Err() != nil, errors.Is(err, redisledger.ErrOver), errors.As(err, final):
			return err
		}
		if before != op.state.Place+strings.Join(op.state.Behind, "\x00") {
			failures, rest = 0, operationRest
		}
		if failures++; failures == operationTries {
			return err
		}
		op.Log.Debug("an operation is interrupted, and goes on", zap.String("job", op.record.Job), zap.Error(err))
		if err := Rest(ctx, rest); err != nil {
			return err
		}
		rest = min(2*rest, operationRestMost)
	}
}

// finalError is an error that would come again.
type finalError struct{ error }

func (e finalError) Unwrap() error { return e.error }

// final marks an error that would come again, unless it is a server's.
func final(err error) error {
	if err == nil || errors.Is(err, flush.ErrTransient) {
		return err
	}
	return finalError{err}
}

// decided makes an error final that only an operator can mend: a permission is missing, or the guards refuse.
func decided(err error) error {
	if redisconn.IsDenied(err) || errors.Is(err, flush.ErrTooManyVanished) || errors.Is(err, verify.ErrMoreExtra) ||
		errors.Is(err, flush.ErrUnaccepted) {
		return finalError{err}
	}
	return err
}

func (op *operation) once(ctx context.Context) error {
	if op.b.flush == nil {
		return finalError{errors.New(unknownToLeader(op.record.Job))}
	}
	if err := tasks.CheckKeys(op.b.task.Config); err != nil {
		return finalError{err}
	}
	if op.record.Kind == redisledger.KindBackfill {
		return op.backfill(ctx)
	}
	checker, err := tasks.Checker(ctx, op.b.task.Config, op.b.task.Store, op.b.task.sink, verify.Options{
		Sample: op.record.Sample, Rate: op.record.Rate, Repair: op.record.Repair, Examples: op.record.Examples,
		Flushed: op.flushed, Progress: func(s verify.State) error { return op.progress(ctx, s) }, May: op.b.task.pipeline.MayMark,
	})
	if err != nil {
		return final(err)
	}
	op.state, err = checker.Run(ctx, op.state)
	return decided(err)
}

// backfill marks all present keys.
func (op *operation) backfill(ctx context.Context) error {
	keys, err := tasks.Keys(op.b.task.Config, op.b.task.Store, nil)
	if err != nil {
		return finalError{err}
	}
	if err := op.b.task.pipeline.MayMark(ctx, false); err != nil {
		return decided(err)
	}
	err = verify.Backfill(ctx, keys, op.state, op.record.Rate, func(s verify.State) error { return op.progress(ctx, s) })
	if errors.Is(err, verify.ErrNoMarks) {
		return finalError{err}
	}
	return decided(err)
}

// progress notes the state of the operation, and records it now and then.
func (op *operation) progress(ctx context.Context, s verify.State) error {
	op.state = s
	if time.Since(op.reported) < operationReported {
		return nil
	}
	return op.report(ctx, job.StateRunning)
}

// flushed waits until a run of the flush has written everything that was there at a time; false: no run will soon.
func (op *operation) flushed(ctx context.Context, since time.Time) (bool, error) {
	if paused, err := op.paused(ctx); err != nil || paused {
		return false, err
	}
	return op.b.flush.await(ctx, since, op.alive)
}

// paused reports whether the job has no runs for now.
func (op *operation) paused(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, recordWithin)
	defer cancel()
	states, err := op.Ledger.Jobs(ctx, []string{op.record.Job})
	return err == nil && states[0].Paused != nil, err
}

// alive records now and then that a wait goes on.
func (op *operation) alive(ctx context.Context) error {
	return op.progress(ctx, op.state)
}

// verifiedRows are the findings of the last verification, by the results of the metric; false without one.
func verifiedRows(s *redisledger.OperationState) (found map[string]int64, at time.Time, ok bool) {
	var state verify.State
	if s == nil || json.Unmarshal(s.Progress, &state) != nil {
		return nil, at, false
	}
	found = map[string]int64{"compared": state.Result.Records}
	for _, kind := range verify.Kinds() {
		found[string(kind)] = state.Result.Count(kind)
	}
	return found, s.Finished, true
}
