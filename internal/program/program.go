// Package program runs the command of a job, once per run: with its environment and its secrets, and so that it is dead before the
// lock may be another node's. It keeps the command's output, without the secrets.
//
// [Program].Run prepares the command (environment, user, limits, input, log file), runs it below a warden (package command), and turns
// its end into the run's result. Its output goes through a redactor of secrets, then to three places: the last part is kept for the
// history, pieces are shipped to a store in Redis, and all of it is appended to the log file.
//
// What fails, and what then:
//
//   - The run's context ends: stop signal, grace and SIGKILL for the command and all that it has started. The lease bounds the grace.
//   - The lease is not renewed in time: the command is ended before it runs out, and the run fails, since no order has ended it.
//   - The lock is lost: a long grace is cut to the drain.
//   - Redis or the disk does not take output: the run goes on. Shipping tries again, and the log file gives up after a while, with a
//     log line.
//   - The command cannot be started: the run fails with the reason and the remedy.
package program

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"syscall"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"baton/internal/command"
	"baton/internal/config"
	"baton/internal/job"
)

// Options are the parts of the node and of the term that a command job needs.
type Options struct {
	Wardens *command.Reserve
	LockKey string
	// Environ is the daemon's own environment.
	Environ []string
	// UntilHardStop is how much longer this node leads for certain.
	UntilHardStop func() time.Duration
	// Drain is the time before the hard stop in which everything ends. Finish is the runner's part of it, at most half, to report the end
	// of the run.
	Drain, Finish time.Duration
	// Known are the node's own secrets, which a command might print; nil: none.
	Known func() []string
	// Traceparent is the W3C Trace Context of a run, by its ID, for the variable of that name; "" or nil: there is no such context.
	Traceparent func(runID string) string
	// Output keeps the last Keep bytes of the output, for MaxAge; nil: the output is not kept.
	Output outputStore
	Keep   int
	MaxAge time.Duration
	Log    *zap.Logger
}

// outputStore keeps the output of commands.
type outputStore interface {
	AppendOutput(ctx context.Context, o Output) error
}

// Output is a piece of a run's output.
type Output struct {
	Job, RunID string
	Offset     int64 // of Text, from the beginning of the run's output
	Text       []byte
	MaxAge     time.Duration // since the last piece; then the output is dropped
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

// Run runs the command to its end: a job.Func. When ctx ends the command gets its stop signal,
// its grace and SIGKILL, it and all that it has started; and whatever ctx does, all of
// it is dead before the hard stop.
func (c *Program) Run(ctx context.Context, r job.Run) (job.Result, error) {
	s, secrets, err := c.spec(r)
	if err != nil {
		return job.Result{}, err
	}
	log := c.o.Log.With(zap.String("job", r.Job), zap.String("run_id", r.ID))
	input, file, err := c.files(log)
	if err != nil {
		return job.Result{}, err
	}
	limit := c.limit(ctx)
	printed := newPrintout(secrets, c.o.Keep, c.ship(r), file, log)
	if input != nil {
		defer input.Close() // it was read
		s.Stdin = input
	}
	s.Stdout, s.Stderr, s.Until, s.Drain = printed, printed, limit, c.o.Drain/2
	s.Begun = func() { job.Begun(ctx) }
	result, err := c.o.Wardens.Run(ctx, s)
	if result.Rest > 0 {
		_, _ = fmt.Fprintf(printed, "baton: %s that the command had left behind %s ended\n",
			count(result.Rest, "process", "processes"), was(result.Rest))
	}
	printed.close(min(shipLast, limit()))
	res := job.Result{Output: printed.tail()}
	if err != nil {
		return res, c.notRun(s.Argv[0], r, err)
	}
	if !result.Stopped && result.Signal == 0 {
		res.ExitCode = &result.Code
	}
	if result.Stopped && ctx.Err() == nil {
		return res, fmt.Errorf("%w (%v)", errLeaseRanOut, result)
	}
	return res, c.judge(result)
}

// spec is the command with everything that is fixed before a run, and its secrets.
func (c *Program) spec(r job.Run) (s command.Spec, secrets []string, err error) {
	settings, who, err := settingsOf(c.config)
	if err != nil {
		return s, nil, err
	}
	env, secrets, err := c.environment(r, who.variables)
	if err != nil {
		return s, nil, err
	}
	if err := enterable("working directory", c.config.WorkingDir); err != nil {
		return s, nil, err
	}
	argv := c.argv()
	path, err := command.FindIn(argv[0], c.config.WorkingDir, env)
	if err != nil {
		return s, nil, c.notRun(argv[0], r, err)
	}
	return command.Spec{
		Path: path, Argv: argv, Env: env, Dir: c.config.WorkingDir, Settings: settings,
		Grace: c.config.Grace, StopSignal: unix.SignalNum(c.config.StopSignal),
	}, secrets, nil
}

// files opens the command's input, and the file for its output; nil for a missing setting.
func (c *Program) files(log *zap.Logger) (input *os.File, output *logFile, err error) {
	if c.config.Stdin != "" {
		input, err = os.OpenFile(c.config.Stdin, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe must not keep us
		if err == nil {
			err = regular(input)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("stdin: %w", err)
		}
	}
	if c.config.LogFile == "" {
		return input, nil, nil
	}
	if output, err = openLog(c.config.LogFile, log); err != nil && input != nil {
		err = errors.Join(err, input.Close())
	}
	return input, output, err
}

// Startable explains why a job's command would not start here. It writes nothing.
func Startable(j config.Job, nodeID string) error {
	c := New(j, nil, Options{Environ: os.Environ()})
	if _, _, err := c.spec(job.Run{Job: j.Name, Term: job.Term{NodeID: nodeID}}); err != nil {
		return err
	}
	return appendable(j.LogFile)
}

// argv is the command line: with shell: true the text is for a shell.
func (c *Program) argv() []string {
	if c.config.Shell {
		return []string{"/bin/sh", "-c", c.config.Command[0]}
	}
	return c.config.Command
}

// limit is how much longer the command may live: its end must be reported before the hard stop, too. A lost lock may be another node's
// already: then a long grace is cut short.
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

// ship makes the store keep a piece of the run's output; nil without a store.
func (c *Program) ship(r job.Run) func(ctx context.Context, offset int64, text []byte) error {
	if c.o.Output == nil {
		return nil
	}
	return func(ctx context.Context, offset int64, text []byte) error {
		return c.o.Output.AppendOutput(ctx, Output{Job: r.Job, RunID: r.ID, Offset: offset, Text: text, MaxAge: c.o.MaxAge})
	}
}

// errLeaseRanOut is the reason when a command is ended without an order.
var errLeaseRanOut = errors.New("it was ended before the lease could run out, which had not been renewed in time: " +
	"redis does not answer, or this host was too busy")

// judge turns the end of the command into the run's.
func (c *Program) judge(r command.Result) error {
	switch {
	case r.Stopped && r.Signal == syscall.SIGKILL:
		return fmt.Errorf("%s did not end it, so it was killed", cmp.Or(c.config.StopSignal, "SIGTERM"))
	case r.Stopped:
		return &stopped{r}
	case r.Signal == 0 && slices.Contains(c.config.SuccessExitCodes, r.Code):
	case r.ExitCode() != 0:
		return errors.New(r.String())
	}
	return nil
}

// stopped is the error of a command that ended by order: the runner gives the reason.
type stopped struct{ result command.Result }

func (e *stopped) Error() string { return fmt.Sprintf("it was told to end (%v)", e.result) }

// Is makes it match the error of work that ended with its context.
func (e *stopped) Is(err error) bool { return err == context.Canceled }

// notRun explains why a command was not run, or its end.
func (c *Program) notRun(name string, r job.Run, err error) error {
	var unusable *command.UnusableError
	switch errno := syscall.Errno(0); {
	case errors.Is(err, command.ErrNotFound):
		return fmt.Errorf("%w: %s: is it installed on this host (%s)?", command.ErrNotFound, name, r.Term.NodeID)
	case errors.As(err, new(*command.SettingError)):
		return errors.New(explained(err))
	case errors.As(err, &unusable):
		return fmt.Errorf("%w: %s: %s", command.ErrNoExec, name, unusable.Why)
	case errors.As(err, &errno):
		return fmt.Errorf("%w: %s: %w", command.ErrNoExec, name, errno)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w: %s: permission denied: is it executable for the user that baton runs as?", command.ErrNoExec, name)
	}
	return err
}

// enterable explains why a directory cannot be entered; otherwise the error would call the command missing.
func enterable(what, dir string) error {
	if dir == "" {
		return nil
	}
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s %s is gone: no such file or directory", what, dir)
	case err != nil:
		return fmt.Errorf("%s cannot be entered: %w", what, err)
	case !info.IsDir():
		return fmt.Errorf("%s %s is not a directory", what, dir)
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
