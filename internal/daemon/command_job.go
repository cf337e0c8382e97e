package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"syscall"
	"time"

	"go.uber.org/zap"

	"baton/internal/command"
	"baton/internal/config"
	"baton/internal/elector"
	"baton/internal/job"
	"baton/internal/job/schedule"
	"baton/internal/redisledger"
)

// commandOptions are what a command job needs of the node and of the term.
type commandOptions struct {
	Wardens *command.Reserve
	LockKey string
	// Environ is the daemon's own environment.
	Environ []string
	// UntilHardStop is how much longer this node leads for certain.
	UntilHardStop func() time.Duration
	// Drain is the time before the hard stop in which everything ends. Half of it, at
	// most a second, is the runner's, to tell how the run has ended.
	Drain time.Duration
	// Known are the node's own secrets, which a command may print all the same; nil: none.
	Known func() []string
	// Output keeps what is printed, for MaxAge; nil: nobody does.
	Output outputStore
	MaxAge time.Duration
	Log    *zap.Logger
}

// outputStore keeps what commands print: *redisledger.Ledger is one.
type outputStore interface {
	AppendOutput(ctx context.Context, o redisledger.Output) error
}

// commandJob is a job that runs a command, in one term.
type commandJob struct {
	config config.Job
	o      commandOptions
}

func newCommandJob(c config.Job, o commandOptions) *commandJob {
	return &commandJob{config: c, o: o}
}

// run runs the command to its end: a job.Func. When ctx ends the command gets SIGTERM,
// its grace and SIGKILL, it and all that it has started; and whatever ctx does, all of
// it is dead before the hard stop.
func (c *commandJob) run(ctx context.Context, r job.Run) (job.Result, error) {
	env, secrets, err := c.environment(r)
	if err != nil {
		return job.Result{}, err
	}
	if err := enterable(c.config.WorkingDir); err != nil {
		return job.Result{}, err
	}
	argv := c.argv()
	path, err := command.FindIn(argv[0], c.config.WorkingDir, env)
	if err != nil {
		return job.Result{}, c.notRun(argv[0], r, err)
	}
	limit := c.limit(ctx)
	printed := newPrintout(secrets, c.ship(r), c.o.Log.With(zap.String("job", r.Job), zap.String("run_id", r.ID)))
	result, err := c.o.Wardens.Run(ctx, command.Spec{
		Path: path, Argv: argv, Env: env, Dir: c.config.WorkingDir, Stdout: printed, Stderr: printed,
		Grace: c.config.Grace, Until: limit, Drain: c.o.Drain / 2,
		Begun: func() { job.Begun(ctx) },
	})
	if result.Rest > 0 {
		_, _ = fmt.Fprintf(printed, "baton: %s that the command had left behind %s ended\n", count(result.Rest, "process", "processes"), was(result.Rest))
	}
	printed.close(min(shipLast, limit()))
	told := job.Result{Output: printed.tail()}
	if err != nil {
		return told, c.notRun(argv[0], r, err)
	}
	if !result.Stopped && result.Signal == 0 {
		told.ExitCode = &result.Code
	}
	if result.Stopped && ctx.Err() == nil {
		return told, fmt.Errorf("%w (%v)", errLeaseRanOut, result)
	}
	return told, c.judge(result)
}

// command is the work of a command job in the term.
func (r *reign) command(t task, keep config.History) job.Func {
	work := newCommandJob(t.config, commandOptions{
		Wardens: r.wardens, LockKey: r.lockKey, Environ: os.Environ(),
		Known: func() []string {
			w, _ := r.current()
			return knownSecrets(w.config)
		},
		UntilHardStop: r.term.UntilHardStop, Drain: r.timing.Drain, Output: r.ledger, MaxAge: keep.MaxAge, Log: r.log.Named("job"),
	}).run
	if !schedule.IsAlways(t.schedule) {
		return work
	}
	return steadily(work, func(ctx context.Context, run job.Run) {
		ctx, cancel := context.WithTimeout(ctx, tellTimeout)
		defer cancel()
		_, _ = r.ledger.Progress(ctx, run, redisledger.Progress{Backlog: -1}, time.Now()) // else it is told the next time
	})
}

// steadily tells of a command that is kept running, every steadyAfter, that it is well: it
// ends no run that would say so, and a failure before it would count for ever.
func steadily(work job.Func, well func(context.Context, job.Run)) job.Func {
	return func(ctx context.Context, r job.Run) (job.Result, error) {
		telling, stop := context.WithCancel(ctx)
		var wg sync.WaitGroup
		wg.Go(func() {
			for rest(telling, steadyAfter) == nil {
				well(telling, r)
			}
		})
		defer wg.Wait()
		defer stop()
		return work(ctx, r)
	}
}

// argv is the command line: with shell: true the text is a shell's.
func (c *commandJob) argv() []string {
	if c.config.Shell {
		return []string{"/bin/sh", "-c", c.config.Command[0]}
	}
	return c.config.Command
}

// limit tells how much longer the command may live: so that its end can be told before
// the hard stop, too. A lock that was lost may be another node's already: then there is
// no waiting for a long grace.
func (c *commandJob) limit(ctx context.Context) func() time.Duration {
	var ended time.Time
	return func() time.Duration {
		left := c.o.UntilHardStop() - finishTimeout(c.o.Drain) - c.o.Drain/10
		if ctx.Err() == nil || !errors.Is(context.Cause(ctx), elector.ErrLeaseLost) {
			return left
		}
		if ended.IsZero() {
			ended = time.Now()
		}
		return min(left, time.Until(ended.Add(c.o.Drain)))
	}
}

// finishTimeout is how long telling how a run has ended may take: shorter than the drain.
func finishTimeout(drain time.Duration) time.Duration { return min(time.Second, drain/2) }

// ship has the store keep a piece of the run's output; nil without a store.
func (c *commandJob) ship(r job.Run) func(ctx context.Context, offset int64, text []byte) error {
	if c.o.Output == nil {
		return nil
	}
	return func(ctx context.Context, offset int64, text []byte) error {
		return c.o.Output.AppendOutput(ctx, redisledger.Output{Job: r.Job, RunID: r.ID, Offset: offset, Text: text, MaxAge: c.o.MaxAge})
	}
}

// errLeaseRanOut is why a command is ended that nobody has told to.
var errLeaseRanOut = errors.New("it was ended before the lease could run out, which had not been renewed in time: redis does not answer, or this host was too busy")

// judge turns the end of the command into the run's.
func (c *commandJob) judge(r command.Result) error {
	switch {
	case r.Stopped && r.Signal == syscall.SIGKILL:
		return errors.New("SIGTERM did not end it, so it was killed")
	case r.Stopped:
		return &toldToEnd{r}
	case r.ExitCode() != 0:
		return errors.New(r.String())
	}
	return nil
}

// toldToEnd is the error of a command that ended as it was told: why it was is the
// runner's to say.
type toldToEnd struct{ result command.Result }

func (e *toldToEnd) Error() string { return fmt.Sprintf("it was told to end (%v)", e.result) }

// Is makes it the error of work that did as its context said.
func (e *toldToEnd) Is(err error) bool { return err == context.Canceled }

// notRun says why a command was not run, or what became of it.
func (c *commandJob) notRun(name string, r job.Run, err error) error {
	var unusable *command.UnusableError
	switch errno := syscall.Errno(0); {
	case errors.Is(err, command.ErrNotFound):
		return fmt.Errorf("%w: %s: is it installed on this host (%s)?", command.ErrNotFound, name, r.Term.NodeID)
	case errors.As(err, &unusable):
		return fmt.Errorf("%w: %s: %s", command.ErrNoExec, name, unusable.Why)
	case errors.As(err, &errno):
		return fmt.Errorf("%w: %s: %w", command.ErrNoExec, name, errno)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w: %s: permission denied: is it executable for the user that baton runs as?", command.ErrNoExec, name)
	}
	return err
}

// enterable tells a working directory that is gone from a command that is.
func enterable(dir string) error {
	if dir == "" {
		return nil
	}
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("working directory %s is gone: no such file or directory", dir)
	case err != nil:
		return fmt.Errorf("working directory cannot be entered: %w", err)
	case !info.IsDir():
		return fmt.Errorf("working directory %s is not a directory", dir)
	}
	return nil
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

func was(n int) string {
	if n == 1 {
		return "was"
	}
	return "were"
}
