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
	// operationReported is the interval between two records of an operation's progress.
	operationReported = time.Second
	// operationRest and operationRestMost are the first and the maximum pause of an operation after an error.
	operationRest, operationRestMost = time.Second, 30 * time.Second
	// operationTries is the number of consecutive errors without progress that end an operation.
	operationTries = 20
	// recordWithin limits the time that Redis has to record the state of an operation.
	recordWithin = 5 * time.Second
)

// operations runs the verifications and backfills of a term's jobs.
type operations struct {
	*Term
	running sync.WaitGroup
	mu      sync.Mutex
	under   map[string]context.CancelFunc // by the ids of operations in progress
}

// take starts the new operations in the argument orders, and ends operations that are no longer ordered.
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

// carryOut continues an operation from its recorded state, until the operation is over or ctx ends.
func (o *operations) carryOut(ctx context.Context, order redisledger.Operation) {
	log := o.Log.Named("job").With(zap.String("job", order.Job), zap.String("operation", order.Kind), zap.String("run_id", order.ID))
	op, err := o.begin(ctx, order)
	if err != nil {
		log.Debug("an operation could not be started", zap.Error(err)) // the next reading of the orders tries again
		_ = Rest(ctx, operationRest)
		return
	}
	log.Info("operation started or continued", zap.String("by", order.By), zap.Float64("done", op.state.Part))
	err = op.work(ctx)
	if ctx.Err() != nil || errors.Is(err, redisledger.ErrOver) {
		log.Info("left", zap.Error(err))
		return // it was cancelled, or the next leader continues it
	}
	op.end(ctx, err)
	log.Info("over", zap.String("state", string(op.record.State)), zap.String("result", op.record.Error))
}

// operation is a verification or a backfill in progress.
type operation struct {
	*operations
	b        boundTask
	record   redisledger.OperationState
	state    verify.State
	reported time.Time
	compared *flush.Unaccepted // the rows that a backfill would change, and the rows without a key; nil: not counted yet
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
			op.state = verify.State{} // start from the beginning, because every step may be repeated
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

// end records the end of the operation. It retries without a limit.
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

// Differences returns a text with the numbers of differences, such as "3 missing, 1 extra".
func Differences(r verify.Result) string {
	var parts []string
	for _, kind := range verify.Kinds() {
		if n := r.Count(kind); n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, kind))
		}
	}
	return strings.Join(parts, ", ")
}

// work runs the operation, and continues after errors as long as the operation makes progress.
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
		op.Log.Debug("an operation was interrupted and will continue", zap.String("job", op.record.Job), zap.Error(err))
		if err := Rest(ctx, rest); err != nil {
			return err
		}
		rest = min(2*rest, operationRestMost)
	}
}

// finalError is an error that would occur again after a retry.
type finalError struct{ error }

func (e finalError) Unwrap() error { return e.error }

// final marks an error as one that would occur again after a retry. It leaves a transient error unmarked.
func final(err error) error {
	if err == nil || errors.Is(err, flush.ErrTransient) {
		return err
	}
	return finalError{err}
}

// decided marks an error as final if only an operator can remove its cause. Such errors are a missing permission, and a refusal by the
// guards of a backfill or repair.
func decided(err error) error {
	if redisconn.IsDenied(err) || errors.Is(err, flush.ErrTooManyVanished) || errors.Is(err, verify.ErrMoreExtra) ||
		errors.Is(err, verify.ErrMoreDifferent) || errors.Is(err, flush.ErrUnaccepted) {
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
	defer op.b.flush.noteWaits(ctx)
	if op.record.Kind == redisledger.KindBackfill {
		return op.backfill(ctx)
	}
	checker, err := op.checker(ctx, op.record.Repair, func(s verify.State) error { return op.progress(ctx, s) })
	if err != nil {
		return err
	}
	if op.state, err = checker.Run(ctx, op.state); err == nil && op.record.Repair && (op.record.Sample == 0 || op.record.Sample == 1) {
		err = op.b.task.pipeline.Marked(ctx)
	}
	return decided(err)
}

// checker returns the checker that compares the keys of the job with its table.
func (op *operation) checker(ctx context.Context, repair bool, progress func(verify.State) error) (*verify.Checker, error) {
	checker, err := tasks.Checker(ctx, op.b.task.Config, op.b.task.Store, op.b.task.sink, verify.Options{
		Sample: op.record.Sample, Rate: op.record.Rate, Repair: repair, Examples: op.record.Examples,
		Flushed: op.flushed, Progress: progress, May: op.b.task.pipeline.MayMark,
	})
	return checker, final(err)
}

// backfill marks all keys that are now in Redis. If some rows of the table may not belong to the job, it compares all rows before it marks
// the first key.
func (op *operation) backfill(ctx context.Context) error {
	keys, err := tasks.Keys(op.b.task.Config, op.b.task.Store, nil)
	if err != nil {
		return finalError{err}
	}
	would, err := op.compare(ctx)
	if err != nil {
		return decided(err)
	}
	// A mark deletes no row whose key exists.
	if _, err := op.b.task.pipeline.MayMark(ctx, flush.Unaccepted{Changes: would.Changes}); err != nil {
		return decided(err)
	}
	err = verify.Backfill(ctx, keys, op.state, op.record.Rate, func(s verify.State) error { return op.progress(ctx, s) })
	if errors.Is(err, verify.ErrNoMarks) {
		return finalError{err}
	}
	if err == nil && would.Deletes == 0 { // only a repair asks about rows without a key
		err = op.b.task.pipeline.Marked(ctx)
	}
	return decided(err)
}

// compare counts the rows that a backfill would change, and the rows without a key. It does this only if some rows of the table may not
// belong to the job. A process that continues the backfill of another process counts again, because the job may have another mapping in
// this process.
func (op *operation) compare(ctx context.Context) (flush.Unaccepted, error) {
	if op.compared != nil {
		return *op.compared, nil
	}
	must, err := op.b.task.pipeline.MustCompare(ctx)
	if err != nil {
		return flush.Unaccepted{}, final(err)
	}
	op.compared = &flush.Unaccepted{}
	if must {
		if err := op.count(ctx); err != nil {
			op.compared = nil
			return flush.Unaccepted{}, err
		}
	}
	op.state.Marking = true
	return *op.compared, nil
}

// count compares all rows with the keys. If another process has begun this comparison, count continues it, unless that process has already
// begun to mark keys.
func (op *operation) count(ctx context.Context) error {
	progress, state := func(s verify.State) error { return op.progress(ctx, s) }, &op.state
	if op.state.Marking {
		progress, state = func(verify.State) error { return op.alive(ctx) }, &verify.State{}
	}
	checker, err := op.checker(ctx, false, progress)
	if err != nil {
		return err
	}
	found, err := checker.Run(ctx, *state)
	if *state = found; err != nil {
		return err
	}
	op.compared = &flush.Unaccepted{Changes: found.Result.Different, Deletes: found.Result.Extra}
	if !op.state.Marking {
		op.state = verify.State{} // the marks begin at the first key
	}
	return nil
}

// progress sets the state of the operation, and records it from time to time.
func (op *operation) progress(ctx context.Context, s verify.State) error {
	op.state = s
	if time.Since(op.reported) < operationReported {
		return nil
	}
	return op.report(ctx, job.StateRunning)
}

// flushed waits until a run of the flush has written all changes that existed at the time in the argument since. It returns false if no run
// will do so soon.
func (op *operation) flushed(ctx context.Context, since time.Time) (bool, error) {
	if paused, err := op.paused(ctx); err != nil || paused {
		return false, err
	}
	return op.b.flush.await(ctx, since, op.alive)
}

// paused reports whether the job is paused and therefore has no runs for now.
func (op *operation) paused(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, recordWithin)
	defer cancel()
	states, err := op.Ledger.Jobs(ctx, []string{op.record.Job})
	return err == nil && states[0].Paused != nil, err
}

// alive records that the operation is still waiting. It does so only from time to time.
func (op *operation) alive(ctx context.Context) error {
	return op.progress(ctx, op.state)
}

// verifiedRows returns the numbers of rows that the last verification has found, by the label values of the metric. It returns false if
// there was no verification.
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
