package work

import (
	"context"
	"os"
	"sync"
	"time"

	"baton/internal/alert"
	"baton/internal/command"
	"baton/internal/config"
	"baton/internal/elector"
	"baton/internal/job"
	"baton/internal/job/schedule"
	"baton/internal/program"
	"baton/internal/redisledger"
	"baton/internal/secret"
	"baton/internal/trace"
)

// command returns the function that does the work of a command job in this term.
func (t *Term) command(of Task, keep config.History) job.Func {
	work := program.New(of.Config, elector.ErrLeaseLost, program.Options{
		Finish: finishTimeout(t.Timing.Drain), Keep: redisledger.KeepOutput,
		Wardens: t.Wardens, LockKey: t.Key, Environ: os.Environ(),
		Known:         func() []string { return secret.Known(t.Config()) },
		UntilHardStop: t.term.UntilHardStop, Drain: t.Timing.Drain,
		Traceparent: func(runID string) string { return t.Traces.Traceparent(trace.Of(runID)) },
		Output:      outputIn{t.Ledger}, MaxAge: keep.MaxAge, Log: t.Log.Named("job"),
	}).Run
	if !schedule.IsAlways(of.Schedule) {
		return work
	}
	return steadily(work, func(ctx context.Context, run job.Run) {
		ctx, cancel := context.WithTimeout(ctx, reportTimeout)
		defer cancel()
		_, _ = t.Ledger.Progress(ctx, run, redisledger.Progress{Backlog: -1}, time.Now()) // the next report makes up for a failure
	})
}

// Refused returns the reason why this process cannot run the commands of a configuration with their settings. It returns nil if it can run
// them.
func Refused(c config.Config, wardens *command.Reserve) error {
	if problems := program.Refused(c, wardens.Try); len(problems) > 0 {
		return problems
	}
	return nil
}

// steadily wraps the work of a command that is kept running. While the work runs, steadily calls the function well at every interval of
// steadyAfter. This is needed because such a run does not end and so reports no success. Otherwise a failure of an earlier run would count
// for ever.
func steadily(work job.Func, well func(context.Context, job.Run)) job.Func {
	return func(ctx context.Context, r job.Run) (job.Result, error) {
		reporting, stop := context.WithCancel(ctx)
		var wg sync.WaitGroup
		wg.Go(func() {
			for Rest(reporting, alert.SteadyAfter) == nil {
				well(reporting, r)
			}
		})
		defer wg.Wait()
		defer stop()
		return work(ctx, r)
	}
}

// finishTimeout returns the time limit for recording the end of a run. This limit is shorter than the argument drain.
func finishTimeout(drain time.Duration) time.Duration { return min(time.Second, drain/2) }

// outputIn stores the output of commands in the ledger.
type outputIn struct{ *redisledger.Ledger }

func (k outputIn) AppendOutput(ctx context.Context, o program.Output) error {
	return k.Ledger.AppendOutput(ctx, redisledger.Output(o))
}
