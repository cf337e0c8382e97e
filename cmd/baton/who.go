package main

import (
	"errors"
	"io"
	"time"

	"github.com/spf13/cobra"

	"baton/cmd/baton/internal/cmdline"
	"baton/cmd/baton/internal/show"
	"baton/internal/diagnose"
	"baton/internal/operate"
	"baton/internal/text"
)

func newWhoCommand(e cmdline.Env) *cobra.Command {
	var out show.Output
	cmd := &cobra.Command{
		Use:   "who",
		Short: "List the locks of this Redis and their holders",
		Long: "List the locks that are held in this Redis, a line each: those of the\n" +
			"configuration, of other elections, of programs with the Go library, and of\n" +
			"`baton lock`. With --server it lists only the locks of the node's\n" +
			"configuration. A free lock is not listed: `baton status` says why it is free.",
		Example: "  baton who\n  baton who -o json",
		Args:    cmdline.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cmdline.WithElection(cmd, e, func(r operate.Operator) error {
				held, err := r.Held(cmd.Context())
				if err != nil && len(held) == 0 {
					return err
				}
				printed := out.Print(e.Stdout, held, func(w io.Writer) error { return printHeld(w, held, time.Now()) })
				return errors.Join(printed, err)
			})
		},
	}
	cmdline.AddRemoteFlags(cmd, e)
	out.AddFlag(cmd, e.Getenv)
	return cmd
}

// notAllowed is shown instead of the holder of a lock, if this user of Redis may not read the lock.
const notAllowed = "(no permission to read it)"

func printHeld(out io.Writer, held []diagnose.Lock, now time.Time) error {
	if len(held) == 0 {
		return show.Say(out, "no locks are held\n")
	}
	w := show.NewTable(out)
	_ = show.Say(w, "LOCK\tNODE\tEPOCH\tFOR\tLEASE LEFT\n") // Flush returns a write error
	for _, l := range held {
		if l.Leader == nil {
			_ = show.Say(w, "%s\t%s\t-\t-\t-\n", l.Key, notAllowed)
			continue
		}
		node, epoch, since := l.Leader.NodeID, show.Epoch(l.Leader.Epoch), text.Duration(now.Sub(l.Leader.Since))
		if l.Leader.Foreign {
			node, epoch, since = "(not baton)", "-", "-"
		}
		_ = show.Say(w, "%s\t%s\t%s\t%s\t%s\n", l.Key, node, epoch, since, leaseColumn(l.Leader.LeaseLeft))
	}
	return w.Flush()
}
