package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"baton/cmd/baton/internal/cmdline"
	"baton/cmd/baton/internal/show"
	"baton/internal/operate"
)

func newLeaderCommand(e cmdline.Env) *cobra.Command {
	var out show.Output
	cmd := &cobra.Command{
		Use:   "leader",
		Short: "Print the node that leads; exit code 3 if none does",
		Long: "Print the node that leads. If no node leads, the exit code is 3, and -o json\n" +
			"prints null.",
		Example: "  baton leader\n  baton leader -o json",
		Args:    cmdline.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cmdline.WithElection(cmd, e, func(r operate.Operator) error {
				s, err := r.Election(cmd.Context())
				if err != nil {
					return err
				}
				leader := s.Leader
				if leader == nil {
					vacant := cmdline.NoLeader(s.LockKey, s.Vacancy)
					return errors.Join(out.Print(e.Stdout, leader, func(io.Writer) error { return nil }), vacant)
				}
				return out.Print(e.Stdout, leader, func(w io.Writer) error {
					name := leader.NodeID
					if leader.Foreign {
						name = fmt.Sprintf("(not baton: owner %s)", leader.Owner)
					}
					return show.Say(w, "%s\n", name)
				})
			})
		},
	}
	cmdline.AddRemoteFlags(cmd, e)
	out.AddFlag(cmd, e.Getenv)
	return cmd
}
