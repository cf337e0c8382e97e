package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"baton/internal/config"
	"baton/internal/crash"
)

// releaseByHand fails where there was nothing to release: whoever does this by hand
// has looked at another term than the one that holds the lock.
func releaseByHand(ctx context.Context, e env, c config.Config, owner string, out output) error {
	released, err := crash.Release(ctx, c, owner, orderedBy("released by hand"))
	if err != nil {
		return err
	}
	if !released.Was {
		return fmt.Errorf("nothing was released: lock %q is not held by owner %s; %s", c.Election.LockKey, owner, heldBy(released.Holder))
	}
	return out.print(e.stdout, []crash.Released{released}, func(w io.Writer) error {
		return say(w, "released lock %q\n", c.Election.LockKey)
	})
}

func heldBy(holder string) string {
	if holder == "" {
		return "nobody holds it"
	}
	return holder + " holds it"
}

// loadLock is loadConfig for who needs the lock alone. The daemon may have run with an
// older file than the one that is there now.
func loadLock(cmd *cobra.Command, e env) (config.Config, error) {
	path, err := configPath(cmd, e)
	if err != nil {
		return config.Config{}, usageError(err)
	}
	c, err := config.ReadLock(config.Input{Path: path, Env: e.getenv, Flags: givenFlags(cmd)})
	if err != nil {
		return c, usageError(err)
	}
	return c, nil
}

func newReleaseCommand(e env) *cobra.Command {
	var out output
	var crashed bool
	var owner string
	cmd := &cobra.Command{
		Use:   "release",
		Short: "Release the lock of a node that can no longer do so itself",
		Long: "Release the lock of a node that can no longer do so itself, if it still holds it.\n" +
			"With --crashed it is what systemd runs after the daemon (ExecStopPost=): it kills what\n" +
			"the daemon has left in its control group, then releases the locks that lease*.json name,\n" +
			"so that another node takes over at once whatever the ttl. Of the configuration it needs\n" +
			"redis: and election: alone; whatever else is wrong there keeps no lock from being released.\n" +
			"Release no lock by hand whose node may still be alive: two nodes would act at once.",
		Example: "  ExecStopPost=/usr/bin/baton release --crashed\n" +
			"  baton release --owner 0b9b3f6e-6f0a-4c43-8d5e-3c1f6b1d8a52",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if crashed == (owner != "") {
				return usageError(errors.New("say either --crashed or --owner; see baton release --help"))
			}
			if owner != "" {
				c, err := loadConfig(cmd, e)
				if err != nil {
					return err
				}
				return releaseByHand(cmd.Context(), e, c, owner, out)
			}
			e := e
			e.getenv = crash.Env(e.getenv)
			released, err := crash.ReleaseLeft(cmd.Context(), func() (config.Config, error) { return loadLock(cmd, e) }, e.getenv)
			if released == nil {
				released = []crash.Released{} // JSON has no null for a list
			}
			return errors.Join(err, out.print(e.stdout, released, func(w io.Writer) error { return printReleased(w, released) }))
		},
	}
	addTargetFlags(cmd, e)
	cmd.Flags().BoolVar(&crashed, "crashed", false, "release what lease*.json in $RUNTIME_DIRECTORY name; for ExecStopPost= only")
	cmd.Flags().StringVar(&owner, "owner", "", "release the lock if this `UUID` holds it")
	out.addFlag(cmd, e)
	return cmd
}

func printReleased(w io.Writer, released []crash.Released) error {
	var errs []error
	for _, r := range released {
		if r.Was {
			errs = append(errs, say(w, "released lock %q, which the daemon left behind\n", r.LockKey))
			continue
		}
		errs = append(errs, say(w, "nothing to release: the lease of lock %q that the daemon left behind had ended, and %s\n", r.LockKey, heldBy(r.Holder)))
	}
	return errors.Join(errs...)
}
