package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"baton/cmd/baton/internal/cmdline"
	"baton/cmd/baton/internal/show"
	"baton/internal/config"
	"baton/internal/crash"
)

// releaseByHand releases the lock of the given owner. It fails if the lock is not held, or if another owner holds the lock.
func releaseByHand(ctx context.Context, e cmdline.Env, c config.Config, owner string, out show.Output) error {
	released, err := crash.Release(ctx, c, owner, cmdline.OrderedBy("released by hand"))
	if err != nil {
		return err
	}
	if !released.Was {
		return fmt.Errorf("nothing was released: lock %q is not held by owner %s; %s", c.Election.LockKey, owner, heldBy(released.Holder))
	}
	return out.Print(e.Stdout, []crash.Released{released}, func(w io.Writer) error {
		return show.Say(w, "released lock %q\n", c.Election.LockKey)
	})
}

func heldBy(holder string) string {
	if holder == "" {
		return "nobody holds it"
	}
	return holder + " holds it"
}

// loadLock works like [cmdline.LoadConfig], but it reads only the settings of the lock. The other settings may have changed since the
// daemon started.
func loadLock(cmd *cobra.Command, e cmdline.Env) (config.Config, error) {
	path, err := cmdline.ConfigPath(cmd, e)
	if err != nil {
		return config.Config{}, cmdline.UsageError(err)
	}
	c, err := config.ReadLock(config.Input{Path: path, Env: e.Getenv, Flags: cmdline.GivenFlags(cmd)})
	if err != nil {
		return c, cmdline.UsageError(err)
	}
	return c, nil
}

func newReleaseCommand(e cmdline.Env) *cobra.Command {
	var out show.Output
	var crashed bool
	var owner string
	cmd := &cobra.Command{
		Use:   "release",
		Short: "Release the lock of a node that can no longer do so itself",
		Long: "Release the lock of a node that can no longer do so itself, if that node still\n" +
			"holds the lock. systemd runs this command with --crashed after the daemon has\n" +
			"ended (ExecStopPost=). The command kills the processes that the daemon has\n" +
			"left in its control group. Then it releases the locks named in lease*.json, so\n" +
			"that another node takes over at once. Of the configuration it needs only the\n" +
			"sections redis and election. Never release a lock by hand if its node may\n" +
			"still be alive: two nodes would act at once.",
		Example: "  ExecStopPost=/usr/bin/baton release --crashed\n" +
			"  baton release --owner 0b9b3f6e-6f0a-4c43-8d5e-3c1f6b1d8a52",
		Args: cmdline.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if crashed == (owner != "") {
				return cmdline.UsageError(errors.New("say either --crashed or --owner; see baton release --help"))
			}
			if owner != "" {
				c, err := cmdline.LoadConfig(cmd, e)
				if err != nil {
					return err
				}
				return releaseByHand(cmd.Context(), e, c, owner, out)
			}
			e := e
			e.Getenv = crash.Env(e.Getenv)
			released, err := crash.ReleaseLeft(cmd.Context(), func() (config.Config, error) { return loadLock(cmd, e) }, e.Getenv)
			if released == nil {
				released = []crash.Released{} // so that the JSON contains a list instead of null
			}
			return errors.Join(err, out.Print(e.Stdout, released, func(w io.Writer) error { return printReleased(w, released) }))
		},
	}
	cmdline.AddTargetFlags(cmd, e)
	cmd.Flags().BoolVar(&crashed, "crashed", false, "release the locks in $RUNTIME_DIRECTORY/lease*.json; for ExecStopPost= only")
	cmd.Flags().StringVar(&owner, "owner", "", "release the lock if this `UUID` holds it")
	out.AddFlag(cmd, e.Getenv)
	return cmd
}

func printReleased(w io.Writer, released []crash.Released) error {
	var errs []error
	for _, r := range released {
		if r.Was {
			errs = append(errs, show.Say(w, "released lock %q, which the daemon left behind\n", r.LockKey))
			continue
		}
		errs = append(errs, show.Say(w, "nothing to release: the lease of lock %q that the daemon left behind had ended, and %s\n",
			r.LockKey, heldBy(r.Holder)))
	}
	return errors.Join(errs...)
}
