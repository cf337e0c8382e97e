package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"baton/internal/operate"
)

func newLeaderCommand(e env) *cobra.Command {
	var out output
	cmd := &cobra.Command{
		Use:     "leader",
		Short:   "Print the node that leads; exit code 3 if nobody does",
		Example: "  baton leader\n  baton leader -o json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withElection(cmd, e, func(r operate.Operator) error {
				s, err := r.Election(cmd.Context())
				if err != nil {
					return err
				}
				leader := s.Leader
				if leader == nil {
					return noLeader(s.LockKey, s.Vacancy)
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
