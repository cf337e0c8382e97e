package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"baton/internal/daemon"
)

func newLeaderCommand(e env) *cobra.Command {
	var out output
	cmd := &cobra.Command{
		Use:     "leader",
		Short:   "Print the node that leads; exit code 3 if nobody does",
		Example: "  baton leader\n  baton leader -o json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withRemote(cmd, e, func(r *daemon.Remote, lockKey string) error {
				leader, vacant, err := r.Leader(cmd.Context())
				if err != nil {
					return err
				}
				if leader == nil {
					return noLeader(lockKey, vacant)
				}
				return out.print(e.stdout, leader, func(w io.Writer) error {
					name := leader.NodeID
					if leader.Foreign {
						name = fmt.Sprintf("(not baton: owner %s)", leader.Owner)
					}
					_, err := fmt.Fprintln(w, name)
					return err
				})
			})
		},
	}
	addTargetFlags(cmd, e)
	out.addFlag(cmd, e)
	return cmd
}

// withRemote runs a command's work against the election of its configuration.
func withRemote(cmd *cobra.Command, e env, work func(r *daemon.Remote, lockKey string) error) error {
	c, err := loadConfig(cmd, e)
	if err != nil {
		return err
	}
	r, err := daemon.Dial(c)
	if err != nil {
		return err
	}
	return errors.Join(work(r, c.Election.LockKey), r.Close())
}
