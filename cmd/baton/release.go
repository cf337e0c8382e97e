package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"baton/internal/daemon"
)

func newReleaseCommand(e env) *cobra.Command {
	var crashed bool
	var owner string
	cmd := &cobra.Command{
		Use:   "release",
		Short: "Release the lock of a node that can no longer do so itself",
		Long: "Release the lock of a node that can no longer do so itself, if it still holds it.\n" +
			"With --crashed it is what systemd runs after the daemon (ExecStopPost=): it kills what\n" +
			"the daemon has left in its control group, then releases the lock that lease.json names,\n" +
			"so that another node takes over at once whatever the ttl. Release no lock by hand whose\n" +
			"node may still be alive: two nodes would act at once.",
		Example: "  ExecStopPost=/usr/bin/baton release --crashed\n" +
			"  baton release --owner 0b9b3f6e-6f0a-4c43-8d5e-3c1f6b1d8a52",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if crashed == (owner != "") {
				return usageError(errors.New("say either --crashed or --owner; see baton release --help"))
			}
			c, err := loadConfig(cmd, e)
			if err != nil {
				return err
			}
			if owner != "" {
				return daemon.Release(cmd.Context(), c, owner, orderedBy("released by hand"))
			}
			released, err := daemon.ReleaseCrashed(cmd.Context(), c, e.getenv)
			if err == nil && released {
				_, err = fmt.Fprintln(e.stdout, "released the lock that the daemon left behind")
			}
			return err
		},
	}
	addTargetFlags(cmd)
	cmd.Flags().BoolVar(&crashed, "crashed", false, "release what lease.json in $RUNTIME_DIRECTORY names; for ExecStopPost= only")
	cmd.Flags().StringVar(&owner, "owner", "", "release the lock if this `UUID` holds it")
	return cmd
}
