package main

import (
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
			return withElection(cmd, e, func(r daemon.Asked) error {
				leader, vacant, err := r.Leader(cmd.Context())
				if err != nil {
					return err
				}
				if leader == nil {
					return noLeader(r.LockKey(), vacant)
				}
				return out.print(e.stdout, leader, func(w io.Writer) error {
					name := leader.NodeID
					if leader.Foreign {
						name = fmt.Sprintf("(not baton: owner %s)", leader.Owner)
					}
					return say(w, "%s\n", name)
				})
			})
		},
	}
	addRemoteFlags(cmd, e)
	out.addFlag(cmd, e)
	return cmd
}
