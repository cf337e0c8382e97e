package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"baton/cmd/baton/internal/cmdline"
	"baton/cmd/baton/internal/show"
	"baton/internal/diagnose"
	"baton/internal/operate"
	"baton/internal/text"
)

func newStatusCommand(e cmdline.Env) *cobra.Command {
	var out show.Output
	var watch bool
	var every time.Duration
	var events int
	cmd := &cobra.Command{
		Use:     "status",
		Aliases: []string{"ps", "ls"},
		Short:   "Show the leader, the nodes and the jobs, or the events",
		Long: "Show which node leads, whether data is late, and the problems with their\n" +
			"remedies; then the nodes and the jobs. --watch continues while Redis is\n" +
			"unavailable. The column DEAD counts the dead letters; without access to the\n" +
			"databases it shows the leader's last count.",
		Example: "  baton status\n  baton status --watch\n  baton status -o json\n" +
			"  baton status --events       # the last 20 events, the newest last\n  baton status --events 200",
		Args: cmdline.AtMostOneArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := countOfEvents(cmd, args, &events); err != nil {
				return cmdline.UsageError(err)
			}
			return cmdline.WithRemote(cmd, e, func(r operate.Operator) error {
				if events > 0 {
					return showEvents(cmd.Context(), e.Stdout, r, out, events)
				}
				letters := countLetters(cmd, e)
				defer letters.Close()
				fetch := func(ctx context.Context) (diagnose.Snapshot, error) {
					s, err := r.Snapshot(ctx)
					letters.Add(ctx, &s)
					return s, err
				}
				if watch {
					return newWatch(cmd, e, out, every, fetch).run(cmd.Context())
				}
				s, err := askOnce(cmd.Context(), e.Stderr, r, fetch)
				if err != nil && !out.Data() && s.LockKey != "" {
					return errors.Join(printStatus(e.Stdout, s), err)
				}
				if err != nil {
					return err
				}
				return out.Print(e.Stdout, s, func(w io.Writer) error { return printStatus(w, s) })
			})
		},
	}
	cmdline.AddRemoteFlags(cmd, e)
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "show it repeatedly, in place on a terminal")
	cmd.Flags().DurationVar(&every, "interval", time.Second, "how often, with --watch")
	cmd.Flags().IntVar(&events, "events", 0, "show the last `N` events of the election instead (20 if N is left out)")
	cmd.Flags().Lookup("events").NoOptDefVal = "20"
	out.AddFlag(cmd, e.Getenv)
	return cmd
}

// askedSoon is how long "baton status" waits before it names a server that has not answered.
const askedSoon = 900 * time.Millisecond

// askOnce fetches the state of the election. It names a server that does not answer soon. If it returns an error, the state contains only
// the data that needs no answer.
func askOnce(ctx context.Context, notes io.Writer, r operate.Operator, fetch func(context.Context) (diagnose.Snapshot, error),
) (diagnose.Snapshot, error) {
	answers := make(chan answer, 1)
	go func() {
		s, err := fetch(ctx)
		answers <- answer{s, err}
	}()
	knows, asksRedis := r.(interface{ Own() diagnose.Snapshot })
	var own diagnose.Snapshot
	if asksRedis {
		own = knows.Own()
	}
	select {
	case a := <-answers:
		return unanswered(own, a)
	case <-time.After(askedSoon):
	}
	if asksRedis {
		_ = show.Say(notes, "redis %s has not answered yet. The configuration says: lock %q, %s. "+
			"baton keeps asking; run baton doctor to find the cause.\n",
			own.Redis.Host, own.LockKey, text.Count(len(own.Jobs), "job"))
	}
	return unanswered(own, <-answers)
}

// unanswered returns the state in the answer a. If that answer is an error, it returns the argument own, which is the state that this
// process knows without an answer.
func unanswered(own diagnose.Snapshot, a answer) (diagnose.Snapshot, error) {
	switch {
	case a.err == nil:
		return a.s, nil
	case own.LockKey == "": // the command asked a node
		own = a.s
	}
	own.Error = a.err.Error()
	if own.Redis.OK {
		own.Redis.OK, own.Redis.Error = false, show.FirstLine(own.Error)
	}
	return own, a.err
}

// countLetters returns a counter of dead letters that asks the databases. If this user may not read the databases, the leader's counts are
// shown.
func countLetters(cmd *cobra.Command, e cmdline.Env) *operate.LetterCount {
	e.Stderr = io.Discard // the state itself names the server that answered
	letters, err := cmdline.AsksLetters(cmd, e)
	if err != nil {
		letters = nil
	}
	return operate.NewLetterCount(letters)
}

// countOfEvents also accepts "--events N" with a space. Because the number may be omitted, the parser of flags treats N as an argument.
func countOfEvents(cmd *cobra.Command, args []string, events *int) error {
	asked := cmd.Flags().Changed("events")
	if len(args) == 1 {
		n, err := strconv.Atoi(args[0])
		if err != nil || !asked {
			return fmt.Errorf("%q: status takes no arguments; to print N events: --events N", args[0])
		}
		*events = n
	}
	switch {
	case asked && *events < 1:
		return fmt.Errorf("--events %d: must be above 0", *events)
	case asked && cmd.Flags().Changed("watch"):
		return errors.New("say either --events or --watch")
	}
	return nil
}

// showEvents prints the event history like a log, with the newest event last.
func showEvents(ctx context.Context, out io.Writer, r operate.Operator, o show.Output, n int) error {
	events, err := r.Events(ctx, n)
	slices.Reverse(events) // now the oldest event is the first
	if err != nil {
		return err
	}
	return o.Print(out, events, func(out io.Writer) error { return printEvents(out, events) })
}

func printEvents(out io.Writer, events []diagnose.Event) error {
	if len(events) == 0 {
		return show.Say(out, "nothing has happened yet\n")
	}
	w := show.NewTable(out)
	_ = show.Say(w, "TIME\tEVENT\tNODE\tEPOCH\tREASON\n") // Flush returns a write error
	for _, e := range events {
		epoch := "-"
		if e.Epoch != 0 {
			epoch = show.Epoch(e.Epoch)
		}
		_ = show.Say(w, "%s\t%s\t%s\t%s\t%s\n", e.At.Local().Format("2006-01-02 15:04:05.000 -07:00"), e.Event,
			cmp.Or(e.NodeID, "-"), epoch, e.Why())
	}
	return w.Flush()
}
