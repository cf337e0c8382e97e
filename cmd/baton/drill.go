package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"baton/cmd/baton/internal/cmdline"
	"baton/cmd/baton/internal/show"
	"baton/internal/operate"
	"baton/internal/operate/direct"
)

func newDrillCommand(e cmdline.Env) *cobra.Command {
	var out show.Output
	var to, reason string
	var rounds int
	var back bool
	var wait time.Duration
	cmd := &cobra.Command{
		Use:   "drill",
		Short: "Hand over for real, and measure it",
		Long: "Order the leader to hand over, as `baton stepdown` does, and measure how long\n" +
			"the leader's work took to end, and how long no node led. Exit code 1 if a\n" +
			"handover took longer than election.ttl, or if no other node can take over.",
		Example: "  baton drill\n  baton drill --to db2 --back\n  baton drill --rounds 10 -o json",
		Args:    cmdline.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if rounds < 1 || rounds > 1000 {
				return cmdline.UsageError(errors.New("--rounds must be a number from 1 to 1000"))
			}
			return withRedis(cmd, e, func(r *direct.Site) error {
				why := "drill"
				if reason != "" {
					why += ", " + reason
				}
				done, err := r.Drill(cmd.Context(), operate.Order{By: cmdline.UserName(), Reason: why, To: to, Wait: wait}, rounds, back)
				if len(done) > 0 {
					err = errors.Join(err, out.Print(e.Stdout, done, func(w io.Writer) error { return printDrill(w, done) }))
				}
				if errors.Is(err, operate.ErrNoLeader) {
					return noneToStepDown(cmd.Context(), r)
				}
				for _, d := range done {
					if err == nil && !d.InTime() {
						err = fmt.Errorf("the handover to %s took %d ms, longer than the lease of %d ms: "+
							"do jobs take long to end, or is Redis slow?", d.To, d.Took.Milliseconds(), d.Lease.Milliseconds())
					}
				}
				return err
			})
		},
	}
	cmdline.AddTargetFlags(cmd, e)
	cmd.Flags().StringVar(&to, "to", "", "the `node` to hand over to at first (default: whichever is ready first)")
	cmd.Flags().StringVar(&reason, "reason", "", "reason, for the event history")
	cmd.Flags().IntVar(&rounds, "rounds", 1, "number of handovers")
	cmd.Flags().BoolVar(&back, "back", false, "give the lead back to the first leader at the end")
	cmd.Flags().DurationVar(&wait, "wait", 30*time.Second, "how long to wait for each next term")
	cmdline.NodeNames(e).AsFlag(cmd, "to")
	out.AddFlag(cmd, e.Getenv)
	return cmd
}

func printDrill(w io.Writer, done []direct.DrillResult) error {
	for _, d := range done {
		took := show.Paint(w, show.Good, fmt.Sprintf("%d ms after the order", d.Took.Milliseconds()))
		if !d.InTime() {
			took = show.Paint(w, show.Bad, fmt.Sprintf("%d ms after the order", d.Took.Milliseconds()))
		}
		if err := show.Say(w, "%s → %s: epoch %d, %s; its work ended after %d ms, no node led for %d ms (lease %d ms)\n",
			d.From, d.To, d.Epoch, took, d.Drain.Milliseconds(), d.Gap.Milliseconds(), d.Lease.Milliseconds()); err != nil {
			return err
		}
	}
	if len(done) < 2 {
		return nil
	}
	took := make([]int64, len(done))
	for i, d := range done {
		took[i] = d.Took.Milliseconds()
	}
	slices.Sort(took)
	return show.Say(w, "%d handovers: p50 %d ms, max %d ms\n", len(took), took[len(took)/2], took[len(took)-1])
}

// withRedis runs the function work with direct access to the election in Redis. It does not ask a node, because a node cannot measure its
// own handover.
func withRedis(cmd *cobra.Command, e cmdline.Env, work func(r *direct.Site) error) error {
	c, err := cmdline.LoadElection(cmd, e)
	if err != nil {
		return err
	}
	r, err := direct.Open(c)
	if err != nil {
		return err
	}
	return errors.Join(work(r), r.Close())
}
