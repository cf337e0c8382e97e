package main

import (
	"io"
	"slices"

	"github.com/spf13/cobra"

	"baton/cmd/baton/internal/cmdline"
	"baton/cmd/baton/internal/show"
	"baton/internal/operate"
)

func newExplainCommand(e cmdline.Env) *cobra.Command {
	var out show.Output
	cmd := &cobra.Command{
		Use:   "explain [NODE]",
		Short: "Explain why a node does not lead, with every reason",
		Long: "List every reason why this host's node, or the named one, does not lead, each\n" +
			"with its remedy. It asks Redis, the node's own status page and the databases.\n" +
			"The page and the databases have one second to answer. The exit code is 1 if\n" +
			"the election cannot be read, or if the named node has never registered.",
		Example: "  baton explain\n  baton explain db2\n  baton explain db2 -o json",
		Args:    cmdline.AtMostOneArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			node := ""
			if len(args) > 0 {
				node = args[0]
			}
			return cmdline.WithElection(cmd, e, func(r operate.Operator) error {
				x, err := r.Explain(cmd.Context(), node)
				if err != nil {
					return err
				}
				if err := out.Print(e.Stdout, x, func(w io.Writer) error { return printExplanation(w, x) }); err != nil {
					return err
				}
				unknown := node != "" &&
					slices.ContainsFunc(x.Reasons, func(why operate.Why) bool { return why.Code == operate.WhyNeverSeen })
				if unknown || x.Reasons[0].Code == operate.WhyRedis {
					return cmdline.WithCode(cmdline.ExitFailure, nil)
				}
				return nil
			})
		},
	}
	cmdline.AddRemoteFlags(cmd, e)
	cmdline.NodeNames(e).AsArguments(cmd, 1)
	out.AddFlag(cmd, e.Getenv)
	return cmd
}

func printExplanation(w io.Writer, x operate.Explanation) error {
	does := show.Paint(w, show.Bad, x.NodeID+" does not lead")
	if x.Leads {
		does = show.Paint(w, show.Good, x.NodeID+" leads")
	}
	if err := show.Say(w, "%s:\n", does); err != nil {
		return err
	}
	for _, why := range x.Reasons {
		c := show.Uneasy
		if x.Leads {
			c = ""
		}
		if err := show.Say(w, "- %s\n", show.Paint(w, c, why.What)); err != nil {
			return err
		}
		if why.Do == "" {
			continue
		}
		if err := show.Say(w, "  → %s\n", why.Do); err != nil {
			return err
		}
	}
	return nil
}
