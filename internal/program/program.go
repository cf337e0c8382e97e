// Package program runs the command of a job, once per run: with its environment and its
// secrets, and so that it is dead before the lock may be another node's. What it prints is
// kept, without the secrets.
package program

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"

	"go.uber.org/zap"

	"baton/internal/command"
	"baton/internal/config"
	"baton/internal/job"
)

// Options are what a command job needs of the node and of the term.
type Options struct {
	Wardens *command.Reserve
	LockKey string
	// Environ is the daemon's own environment.
	Environ []string
	// UntilHardStop is how much longer this node leads for certain.
	UntilHardStop func() time.Duration
	// Drain is the time before the hard stop in which everything ends. Finish of it, at
	// most half, is the runner's, to report how the run has ended.
	Drain, Finish time.Duration
	// Known are the node's own secrets, which a command may print all the same; nil: none.
	Known func() []string
	// Output keeps the last Keep bytes of what is printed, for MaxAge; nil: nothing does.
	Output outputStore
	Keep   int
	MaxAge time.Duration
	Log    *zap.Logger
}

// outputStore keeps what commands print.
type outputStore interface {
	AppendOutput(ctx context.Context, o Output) error
}

// Output is a piece of what a run has printed.
type Output struct {
	Job, RunID string
	Offset     int64 // of Text, from where the run's output begins
	Text       []byte
	MaxAge     time.Duration // since the last piece, after which nothing of it is kept
}

// Program is a job that runs a command, in one term.
type Program struct {
	config    config.Job
	leaseLost error
	o         Options
}

// New prepares the command of a job; it starts nothing. leaseLost is the cause of a context
// whose lock was lost.
func New(c config.Job, leaseLost error, o Options) *Program {
	return &Program{config: c, leaseLost: leaseLost, o: o}
}

// Run runs the command to its end: a job.Func. When ctx ends the command gets SIGTERM,
// its grace and SIGKILL, it and all that it has started; and whatever ctx does, all of
// it is dead before the hard stop.
func (c *Program) Run(ctx context.Context, r job.Run) (job.Result, error) {
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
	printed := newPrintout(secrets, c.o.Keep, c.ship(r), c.o.Log.With(zap.String("job", r.Job), zap.String("run_id", r.ID)))
	result, err := c.o.Wardens.Run(ctx, command.Spec{
		Path: path, Argv: argv, Env: env, Dir: c.config.WorkingDir, Stdout: printed, Stderr: printed,
		Grace: c.config.Grace, Until: limit, Drain: c.o.Drain / 2,
		Begun: func() { job.Begun(ctx) },
	})
	if result.Rest > 0 {
		_, _ = fmt.Fprintf(printed, "baton: %s that the command had left behind %s ended\n",
			count(result.Rest, "process", "processes"), was(result.Rest))
	}
	printed.close(min(shipLast, limit()))
	res := job.Result{Output: printed.tail()}
	if err != nil {
		return res, c.notRun(argv[0], r, err)
	}
	if !result.Stopped && result.Signal == 0 {
		res.ExitCode = &result.Code
	}
	if result.Stopped && ctx.Err() == nil {
		return res, fmt.Errorf("%w (%v)", errLeaseRanOut, result)
	}
	return res, c.judge(result)
}

// Startable says why a job's command would not start here.
func Startable(j config.Job, nodeID string) error {
	c := New(j, nil, Options{Environ: os.Environ()})
	run := job.Run{Job: j.Name, Term: job.Term{NodeID: nodeID}}
	env, _, err := c.environment(run)
	if err != nil {
		return err
	}
	if err := enterable(j.WorkingDir); err != nil {
		return err
	}
	if _, err := command.FindIn(c.argv()[0], j.WorkingDir, env); err != nil {
		return c.notRun(c.argv()[0], run, err)
	}
	return nil
}

// argv is the command line: with shell: true the text is a shell's.
func (c *Program) argv() []string {
	if c.config.Shell {
		return []string{"/bin/sh", "-c", c.config.Command[0]}
	}
	return c.config.Command
}

// limit is how much longer the command may live: so that its end can be reported before
// the hard stop, too. A lock that was lost may be another node's already: then there is
// no waiting for a long grace.
func (c *Program) limit(ctx context.Context) func() time.Duration {
	var ended time.Time
	return func() time.Duration {
		left := c.o.UntilHardStop() - c.o.Finish - c.o.Drain/10
		if ctx.Err() == nil || !errors.Is(context.Cause(ctx), c.leaseLost) {
			return left
		}
		if ended.IsZero() {
			ended = time.Now()
		}
		return min(left, time.Until(ended.Add(c.o.Drain)))
	}
}

// ship has the store keep a piece of the run's output; nil without a store.
func (c *Program) ship(r job.Run) func(ctx context.Context, offset int64, text []byte) error {
	if c.o.Output == nil {
		return nil
	}
	return func(ctx context.Context, offset int64, text []byte) error {
		return c.o.Output.AppendOutput(ctx, Output{Job: r.Job, RunID: r.ID, Offset: offset, Text: text, MaxAge: c.o.MaxAge})
	}
}

// errLeaseRanOut is why a command is ended without an order.
var errLeaseRanOut = errors.New("it was ended before the lease could run out, which had not been renewed in time: " +
	"redis does not answer, or this host was too busy")

// judge turns the end of the command into the run's.
func (c *Program) judge(r command.Result) error {
	switch {
	case r.Stopped && r.Signal == syscall.SIGKILL:
		return errors.New("SIGTERM did not end it, so it was killed")
	case r.Stopped:
		return &stopped{r}
	case r.ExitCode() != 0:
		return errors.New(r.String())
	}
	return nil
}

// stopped is the error of a command that ended by order: why it was is the
// runner's to say.
type stopped struct{ result command.Result }

func (e *stopped) Error() string { return fmt.Sprintf("it was told to end (%v)", e.result) }

// Is makes it the error of work that did as its context said.
func (e *stopped) Is(err error) bool { return err == context.Canceled }

// notRun says why a command was not run, or what became of it.
func (c *Program) notRun(name string, r job.Run, err error) error {
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

// enterable reports whether a working directory can be entered, and not the command is missing.
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
