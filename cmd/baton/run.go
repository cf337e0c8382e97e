package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"baton/cmd/baton/internal/cmdline"
	"baton/internal/config"
	"baton/internal/daemon"
	"baton/internal/profiling"
)

func newRunCommand(e cmdline.Env) *cobra.Command {
	var profiles string
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run the daemon: campaign, and run the jobs while leading",
		Long: "Run the daemon: campaign for the lock, and run the jobs while this node leads.\n" +
			"SIGTERM ends the daemon in order: jobs stop, the lock is released, another\n" +
			"node takes over. Another SIGTERM, more than a second later, kills the daemon,\n" +
			"and the lock ends with its lease. Without a configuration file the daemon\n" +
			"campaigns and runs no jobs; with a file without jobs it leaves the lead to\n" +
			"nodes with jobs. With an empty election.lock_key it waits until the file has a\n" +
			"key.",
		Example: "  baton run --config /etc/baton/baton.yaml\n" +
			"  baton run --redis redis://127.0.0.1:6379/0 --lock-key reports --http off",
		Args: cmdline.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			load := func() (config.Config, error) { return cmdline.LoadConfig(cmd, e) }
			hangups := make(chan os.Signal, 1)
			signal.Notify(hangups, syscall.SIGHUP)
			defer signal.Stop(hangups)
			c, err := load()
			if config.AwaitsLockKey(err) {
				log := newLogger(e, config.Default().Log, zap.InfoLevel)
				c, err = daemon.AwaitLockKey(cmd.Context(), log, load, hangups, err)
				if cmd.Context().Err() != nil {
					return nil // the process was asked to end before it began to work
				}
			}
			if err != nil {
				return err
			}
			level := zap.NewAtomicLevel()
			level.SetLevel(levelOf(c.Log))
			log := newLogger(e, c.Log, level)
			if profiles != "" {
				s, err := profiling.Listen(profiles)
				if err != nil {
					return cmdline.UsageError(fmt.Errorf("--pprof: %w", err))
				}
				defer s.Close()
				log.Info("profiles are served", zap.String("address", s.Address()))
			}
			// The reader of the log may end, for example when journald is stopped. Go ends a program that writes to a standard output
			// without a reader, unless the program catches SIGPIPE. The program does not ignore SIGPIPE, because the programs that jobs run
			// would inherit the ignored signal.
			broken := make(chan os.Signal, 1)
			signal.Notify(broken, syscall.SIGPIPE)
			defer signal.Stop(broken)
			err = daemon.Run(cmd.Context(), c, daemon.Options{
				Version:  thisBuild().Version,
				Logger:   log,
				Getenv:   e.Getenv,
				Exit:     e.Exit,
				Load:     load,
				Reload:   hangups,
				Reloaded: func(c config.Config) { level.SetLevel(levelOf(c.Log)) },
			})
			if _, unusable := errors.AsType[config.Problems](err); unusable { // the problem is in this host or its environment
				return cmdline.UsageError(err)
			}
			return err
		},
	}
	cmdline.AddRunFlags(cmd, e)
	cmd.Flags().StringVar(&profiles, "pprof", "", "serve Go's profiles on this `address` on loopback, such as 127.0.0.1:6060")
	return cmd
}

// levelOf returns the log level that the configuration sets.
func levelOf(log config.Log) zapcore.Level {
	level, err := zapcore.ParseLevel(log.Level)
	if err != nil {
		level = zapcore.InfoLevel // cannot happen, because the configuration is valid
	}
	return level
}

func newLogger(e cmdline.Env, log config.Log, level zapcore.LevelEnabler) *zap.Logger {
	enc := zap.NewProductionEncoderConfig()
	enc.TimeKey, enc.MessageKey = "time", "message"
	enc.EncodeTime = func(t time.Time, to zapcore.PrimitiveArrayEncoder) { zapcore.ISO8601TimeEncoder(t.UTC(), to) }
	encoder := zapcore.NewJSONEncoder(enc)
	if log.Format == "text" {
		enc.EncodeLevel = zapcore.CapitalLevelEncoder
		encoder = zapcore.NewConsoleEncoder(enc)
	}
	w := zapcore.Lock(zapcore.AddSync(e.Stderr))
	if toJournal(e.Stderr, e.Getenv) {
		return zap.New(prioritized(encoder, w, level))
	}
	return zap.New(zapcore.NewCore(encoder, w, level))
}
