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
			"about it: another leads, a pause, a quarantine, a reservation, a node of a higher priority,\n" +
			"an abdication, or that it is no candidate, not there, or without Redis. What the node's own\n" +
			"status page and the databases say is added if they answer within a second. Exit code 1 if\n" +
			"the election cannot be read.",
		Example: "  baton explain\n  baton explain db2\n  baton explain db2 -o json",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			node := ""
			if len(args) > 0 {
				node = args[0]
			}
			return withRemote(cmd, e, func(r daemon.Asked) error {
				x := r.Explain(cmd.Context(), node)
				if err := out.print(e.stdout, x, func(w io.Writer) error { return printExplanation(w, x) }); err != nil {
					return err
				}
				if x.Reasons[0].Code == daemon.WhyRedis {
					return &exitError{exitFailure, nil}
				}
				return nil
			})
		},
	}
	addRemoteFlags(cmd, e)
	nodeNames(e).asArguments(cmd, 1)
	out.addFlag(cmd, e)
	return cmd
}

func printExplanation(w io.Writer, x daemon.Explanation) error {
	does := "does not lead"
	if x.Leads {
		does = "leads"
	}
	if _, err := fmt.Fprintf(w, "%s %s:\n", x.NodeID, does); err != nil {
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
