package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"baton/internal/daemon"
)

func newExplainCommand(e env) *cobra.Command {
	var out output
	cmd := &cobra.Command{
		Use:   "explain [NODE]",
		Short: "Tell why a node does not lead, with every reason",
		Long: "Tell every reason why this host's node, or the named one, does not lead, and what to do\n" +
			"about it: another leads, a pause, a quarantine, a reservation, its priority, or that it is\n" +
			"no candidate, or not there.",
		Example: "  baton explain\n  baton explain db2 -o json",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			node := ""
			if len(args) > 0 {
				node = args[0]
			}
			return withRemote(cmd, e, func(r *daemon.Remote, _ string) error {
				x, err := r.Explain(cmd.Context(), node)
				if err != nil {
					return err
				}
				return out.print(e.stdout, x, func(w io.Writer) error { return printExplanation(w, x) })
			})
		},
	}
	addTargetFlags(cmd)
	out.addFlag(cmd)
	return cmd
}

func printExplanation(w io.Writer, x daemon.Explanation) error {
	if x.Leads {
		_, err := fmt.Fprintf(w, "%s leads\n", x.NodeID)
		return err
	}
	if _, err := fmt.Fprintf(w, "%s does not lead:\n", x.NodeID); err != nil {
		return err
	}
	for _, why := range x.Reasons {
		text := "- " + why.What
		if why.Do != "" {
			text += "\n  → " + why.Do
		}
		if _, err := fmt.Fprintln(w, text); err != nil {
			return err
		}
	}
	return nil
}
