package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"baton/cmd/baton/internal/cmdline"
	"baton/cmd/baton/internal/show"
	"baton/internal/command"
	"baton/internal/lockcmd"
)

// lockFlags are the flags of "baton lock".
type lockFlags struct {
	wait, retry, atLeast time.Duration
	noWait               bool
	slots                int
	shell                string
	conflict             int
	leave                bool
	verbose              bool
	list                 bool
	breakUp              string
	reason               string
	out                  show.Output
}

func newLockCommand(e cmdline.Env) *cobra.Command {
	var f lockFlags
	cmd := &cobra.Command{
		Use:   "lock [flags] NAME… -- COMMAND [ARGUMENT…]",
		Short: "Run a command while holding a lock, on one of many hosts",
		Long: `Run a command while holding locks in Redis, as flock(1) does with files of one
host. Given several names, baton takes all locks or none, in sorted order. If a
lock is lost, or baton is killed, the command and all processes that it has
started get SIGTERM, and after election.drain SIGKILL, before another client can
have the lock.

A name is a Redis key: baton and a client that does SET NAME value NX PX ms
exclude each other. The keys {NAME}:term and {NAME}:events are never removed, so
that epochs only rise. Therefore do not make up a new name for every run, as
with $(date). Processes that the command leaves in the background are also
ended, unless --leave-running is given. Only standard input, output and error
are handed to the command. If the command is stopped at its terminal (Ctrl-Z)
for longer than the lease, baton ends it.

Inside the command, ` + "`baton lock`" + ` with a name that is held already only checks
that the lock is still held. The command finds in its environment:

  BATON_LOCK_KEY  the lock: the first NAME given; of a semaphore the slot's key
  BATON_OWNER     the owner's UUID, which is the lock's value in Redis
  BATON_EPOCH     a number that rises with every holder: the fencing token
  BATON_SLOT      with -n: which of the slots, from 1
  BATON_LOCKS     all locks that are held, as words of NAME=OWNER:EPOCH,
                  NAME escaped as in a URL
  BATON_NODE_ID   this host

Nothing is printed unless something is wrong; -v prints more. If --no-wait does
not get the lock, that is not wrong. The exit code is the command's own, or 128
plus the signal that ended the command; otherwise:

` + lockCodes(),
		Example: `  baton lock nightly -- /usr/local/bin/report --yesterday
  baton lock orders stock -- ./move-stock          # both, or none
  baton lock -n 3 encoder -- ffmpeg -i in.mkv out.mp4   # three at a time
  baton lock --wait 30s deploy -c 'make && make install' || echo "exit code $?"

  # In a crontab on every host: one of them runs it, the others do nothing.
  # --at-least is more than their clocks can differ: else the next one could
  # run it again.
  30 2 * * *  root  baton lock --no-wait -E 0 --at-least 1m nightly -- report

  baton lock --list
  baton lock --break nightly --reason 'db1 is on fire'
  baton status --events --lock-key nightly     # who had it, and who broke it`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd, e, args)
		},
	}
	f.add(cmd, e)
	return cmd
}

func (f *lockFlags) add(cmd *cobra.Command, e cmdline.Env) {
	flags := cmd.Flags()
	flags.DurationVar(&f.wait, "wait", 0, "give up after this `duration` (default: wait for ever)")
	flags.BoolVar(&f.noWait, "no-wait", false, "give up at once")
	flags.DurationVar(&f.retry, "retry-interval", 0,
		"`duration` between attempts while a lock is held; a release is noticed at once (default poll_interval)")
	flags.DurationVar(&f.atLeast, "at-least", 0, "hold the lock for at least this `duration`, even if the command ends sooner")
	flags.IntVarP(&f.slots, "slots", "n", 0, "a semaphore: this `many` clients may hold the lock at a time; give the same "+
		"number everywhere")
	flags.StringVarP(&f.shell, "command", "c", "", "run this `text` by /bin/sh, instead of a command after --")
	flags.IntVarP(&f.conflict, "conflict-exit-code", "E", exitNotHad, "exit `code` if another client has a lock")
	flags.BoolVar(&f.leave, "leave-running", false, "do not end processes that the command leaves running; they continue without the lock")
	flags.BoolVarP(&f.verbose, "verbose", "v", false, "print each step on standard error")
	flags.BoolVar(&f.list, "list", false, "list the locks of this Redis that are held, with their owners")
	flags.StringVar(&f.breakUp, "break", "", "take the lock `NAME` away from its holder; it is free when its lease would have ended")
	flags.StringVar(&f.reason, "reason", "", "reason, for the event history (with --break)")
	f.out.AddFlag(cmd, e.Getenv)
	cmdline.AddConfigFlags(cmd, e, "redis", "ttl", "heartbeat-interval", "node-id")
	cmdline.LockNames(e).AsFlag(cmd, "break")
	cmdline.LockNames(e).AsArguments(cmd, -1)
	cmd.MarkFlagsMutuallyExclusive("wait", "no-wait")
	cmd.MarkFlagsMutuallyExclusive("list", "break", "command")
}

func (f *lockFlags) run(cmd *cobra.Command, e cmdline.Env, args []string) error {
	if f.list || cmd.Flags().Changed("break") {
		if len(args) > 0 {
			return cmdline.UsageError(errors.New("with --list or --break, remove the command and the other names"))
		}
		return f.inspect(cmd, e)
	}
	names, argv, err := f.split(cmd, args)
	if err != nil {
		return cmdline.UsageError(fmt.Errorf("%w\nsee %s --help", err, cmd.CommandPath()))
	}
	c, err := cmdline.LoadConfig(cmd, e)
	if err != nil {
		return err
	}
	if f.retry > 0 {
		c.Election.PollInterval = f.retry
	}
	// The command under the lock gets the signals. They must not also end the context, because main uses its end to stop everything else.
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, passedOn()...)
	defer signal.Stop(signals)
	ctx := context.WithoutCancel(cmd.Context())
	result, err := lockcmd.Run(ctx, c, lockcmd.Options{
		Names: names, Slots: f.slots, Wait: f.patience(cmd), AtLeast: f.atLeast, Command: argv, Env: os.Environ(),
		Stdin: e.Stdin, Stdout: e.Stdout, Stderr: e.Stderr, Leave: f.leave,
		Warden: []string{"/proc/self/exe", wardenCommand}, Signals: signals, Version: thisBuild().Version,
		Warn: func(text string) { _ = show.Say(e.Stderr, "baton: %s\n", text) },
		Note: f.note(e.Stderr), Exit: e.Exit,
	})
	return f.coded(result, err, e.Stderr)
}

// split separates the names of the locks from the command, which are both arguments of "baton lock".
func (f *lockFlags) split(cmd *cobra.Command, args []string) (names, argv []string, err error) {
	dash := cmd.ArgsLenAtDash()
	names = args
	if dash >= 0 {
		names, argv = args[:dash], args[dash:]
	}
	switch {
	case f.wait < 0 || f.retry < 0 || f.atLeast < 0:
		return nil, nil, errors.New("--wait, --at-least and --retry-interval must not be negative")
	case f.conflict < 0 || f.conflict > 255:
		return nil, nil, fmt.Errorf("-E is %d: an exit code is a number from 0 to 255", f.conflict)
	case f.slots < 1 && cmd.Flags().Changed("slots"):
		return nil, nil, fmt.Errorf("-n is %d: a semaphore has 1 slot or more", f.slots)
	case f.reason != "":
		return nil, nil, errors.New("--reason can only be used with --break")
	case len(names) == 0:
		return nil, nil, errors.New("the name of the lock is missing: write baton lock NAME -- COMMAND")
	case f.shell != "" && len(argv) > 0:
		return nil, nil, errors.New("-c gives the command already; remove the command after --")
	case f.shell != "":
		argv = []string{"/bin/sh", "-c", f.shell}
	case len(argv) == 0:
		return nil, nil, errors.New("the command is missing: write baton lock NAME -- COMMAND")
	}
	return names, argv, nil
}

// patience returns the maximum time to wait for the locks.
func (f *lockFlags) patience(cmd *cobra.Command) time.Duration {
	if f.noWait || cmd.Flags().Changed("wait") {
		return f.wait
	}
	return lockcmd.Forever
}

func (f *lockFlags) note(w io.Writer) func(string) {
	if !f.verbose {
		return func(string) {}
	}
	return func(text string) { _ = show.Say(w, "baton: %s\n", text) }
}

// coded converts the result of the command under the lock, or err, to an error with an exit code.
func (f *lockFlags) coded(result command.Result, err error, stderr io.Writer) error {
	if interrupted, ok := errors.AsType[*lockcmd.Interrupted](err); ok {
		return cmdline.WithCode(128+int(interrupted.Signal), nil)
	}
	switch {
	case err == nil && result.ExitCode() == cmdline.ExitOK:
		return nil
	case err == nil:
		return cmdline.WithCode(result.ExitCode(), nil)
	case errors.Is(err, lockcmd.ErrRedisAway):
		return cmdline.WithCode(exitNoRedis, err) // -E does not apply, because a crontab with -E 0 would hide the failure for ever
	case errors.Is(err, lockcmd.ErrNotHad):
		// In a crontab on many hosts, all hosts but one fail to get the lock each time, so this is no error.
		if f.noWait && !f.verbose && !show.IsTerminal(stderr) {
			err = nil
		}
		return cmdline.WithCode(f.conflict, err)
	case errors.Is(err, lockcmd.ErrLockLost):
		return cmdline.WithCode(exitLost, err)
	case errors.Is(err, lockcmd.ErrUsage):
		return cmdline.UsageError(err)
	case errors.Is(err, command.ErrNotFound):
		return cmdline.WithCode(command.CodeNotFound, err)
	case errors.Is(err, command.ErrNoExec):
		return cmdline.WithCode(command.CodeNoExec, err)
	}
	return err
}

// passedOn returns the signals that the command under a lock gets. It omits ignored signals, because nohup(1) makes the process ignore a
// signal on purpose.
func passedOn() []os.Signal {
	all := []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1,
		syscall.SIGUSR2, syscall.SIGALRM, syscall.SIGWINCH}
	return slices.DeleteFunc(all, signal.Ignored)
}
