// Package program runs the command of a job, once for each run. It gives the command its environment and its secrets, and makes sure that
// the command is dead before another node may have the lock. It stores the command's output, without the secrets.
//
// [Program].Run prepares the command (environment, user, limits, input, log file), runs it below a warden (package command), and turns the
// end of the command into the run's result. A redactor removes secrets from the command's output. Then the output has three destinations:
// the history gets the last part, a store in Redis gets pieces, and the log file gets the whole output.
//
// What fails, and what then:
//
//   - If the run's context ends, the command and all processes that it has started get the stop signal, and SIGKILL at the end of the grace
//     time. The lease limits the grace time.
//   - If the lease is not renewed in time, the command is ended before the lease runs out. The run then fails, because no order has ended
//     it.
//   - If the lock is lost, a longer grace time is shortened to the drain time.
//   - If Redis or the disk does not accept output, the run continues. Shipping tries again, and the log file is given up after a while,
//     with a line in the node's log.
//   - If the command cannot be started, the run fails with the reason and the remedy.
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

// Options contains the parts of the node and of the term that a command job needs.
type Options struct {
	Wardens *command.Reserve
	LockKey string
	// Environ is the daemon's own environment.
	Environ []string
	// UntilHardStop returns how much longer this node certainly leads.
	UntilHardStop func() time.Duration
	// Drain is the time, before the hard stop, within which all work must end. Finish is the runner's part of Drain, at most half of it, to
	// report the end of the run.
	Drain, Finish time.Duration
	// Known returns the node's own secrets, which a command might print. If it is nil, there are none.
	Known func() []string
	// Traceparent returns the W3C Trace Context of a run, by its ID, for the variable TRACEPARENT. If it is nil or returns "", there is no
	// such context.
	Traceparent func(runID string) string
	// Output keeps the last Keep bytes of the output for MaxAge. If Output is nil, the output is not kept.
	Output outputStore
	Keep   int
	MaxAge time.Duration
	Log    *zap.Logger
}

// outputStore stores the output of commands.
type outputStore interface {
	AppendOutput(ctx context.Context, o Output) error
}

// Output is a piece of a run's output.
type Output struct {
	Job, RunID string
	Offset     int64 // position of Text in the run's output
	Text       []byte
	MaxAge     time.Duration // time since the last piece after which the output is dropped
}

// Program is a job that runs a command, in one term.
type Program struct {
	config    config.Job
	leaseLost error
	o         Options
}

// New returns a Program for the command of a job, and starts no process. The argument leaseLost is the cause of a context that ends because
// the lock was lost.
func New(c config.Job, leaseLost error, o Options) *Program {
	return &Program{config: c, leaseLost: leaseLost, o: o}
}

// Run is a job.Func. It runs the command and waits for its end. When ctx ends, the command and all processes that it has started get the
// stop signal, and SIGKILL at the end of the grace time. Even if ctx does not end, all of them are dead before the hard stop.
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
		defer input.Close() // ignores errors, because the file was only read
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

// spec returns the command with all settings that are fixed before a run, and its secrets.
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

// files opens the command's input, and the file for its output. Each is nil if its setting is missing.
func (c *Program) files(log *zap.Logger) (input *os.File, output *logFile, err error) {
	if c.config.Stdin != "" {
		input, err = os.OpenFile(c.config.Stdin, os.O_RDONLY|syscall.O_NONBLOCK, 0) // opening a pipe must not wait
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

// Startable returns an error if a job's command could not be started on this host. It writes nothing.
func Startable(j config.Job, nodeID string) error {
	c := New(j, nil, Options{Environ: os.Environ()})
	if _, _, err := c.spec(job.Run{Job: j.Name, Term: job.Term{NodeID: nodeID}}); err != nil {
		return err
	}
	return appendable(j.LogFile)
}

// argv returns the command line. With the setting "shell: true" the text is a script for a shell.
func (c *Program) argv() []string {
	if c.config.Shell {
		return []string{"/bin/sh", "-c", c.config.Command[0]}
	}
	return c.config.Command
}

// limit returns a function that says how much longer the command may live. The end of the command must also be reported before the hard
// stop. If the lock is lost, another node may already hold the lock, so a long grace time is shortened.
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

// ship returns a function that stores a piece of the run's output, or nil if there is no store.
func (c *Program) ship(r job.Run) func(ctx context.Context, offset int64, text []byte) error {
	if c.o.Output == nil {
		return nil
	}
	return func(ctx context.Context, offset int64, text []byte) error {
		return c.o.Output.AppendOutput(ctx, Output{Job: r.Job, RunID: r.ID, Offset: offset, Text: text, MaxAge: c.o.MaxAge})
	}
}

// errLeaseRanOut is the error of a run whose command was ended without an order, before the lease could run out.
var errLeaseRanOut = errors.New("the command was ended, because the lease was not renewed in time: " +
	"redis does not answer, or this host was too busy")

// judge turns the end of the command into the error of the run.
func (c *Program) judge(r command.Result) error {
	switch {
	case r.Stopped && r.Signal == syscall.SIGKILL:
		return fmt.Errorf("%s did not end the command, so it was killed", cmp.Or(c.config.StopSignal, "SIGTERM"))
	case r.Stopped:
		return &stopped{r}
	case r.Signal == 0 && slices.Contains(c.config.SuccessExitCodes, r.Code):
	case r.ExitCode() != 0:
		return errors.New(r.String())
	}
	return nil
}

// stopped is the error of a command that was ended because the runner ended the run. The runner adds the reason.
type stopped struct{ result command.Result }

func (e *stopped) Error() string { return fmt.Sprintf("baton told the command to end (%v)", e.result) }

// Is reports whether err is context.Canceled, so that stopped matches the error of work that ended with its context.
func (e *stopped) Is(err error) bool { return err == context.Canceled }

// notRun explains why a command was not run, or why its end is unknown.
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

// enterable explains why a directory cannot be entered. Without this check the error would say that the command is missing.
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
