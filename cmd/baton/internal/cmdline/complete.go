package cmdline

import (
	"cmp"
	"context"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"baton/cmd/baton/internal/show"
	"baton/internal/diagnose"
	"baton/internal/lockcmd"
	"baton/internal/operate"
)

const (
	// completeWithin is how long a completion waits for a server.
	completeWithin = 500 * time.Millisecond
	// completedRuns and completedLetters are how many ids are offered: the newest.
	completedRuns    = 20
	completedLetters = 50
)

// Completion are the words that may stand where the cursor is. A shell shows the text after
// a tab as an explanation. If anything goes wrong, the list is empty: an error would be
// written into the command line that is typed.
type Completion func(ctx context.Context, cmd *cobra.Command, args []string) []string

func (complete Completion) function() cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), completeWithin)
		defer cancel()
		answer := make(chan []string, 1)
		go func() { answer <- complete(ctx, cmd, args) }()
		var words []string
		select {
		case words = <-answer:
		case <-ctx.Done(): // what does not heed that ends with the process
		}
		words = slices.DeleteFunc(words, func(w string) bool { return !strings.HasPrefix(w, begun) })
		return words, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
}

// AsFlag completes a flag's value.
func (complete Completion) AsFlag(cmd *cobra.Command, flag string) {
	_ = cmd.RegisterFlagCompletionFunc(flag, complete.function())
}

// AsArguments completes the first most arguments; below 0: all.
func (complete Completion) AsArguments(cmd *cobra.Command, most int) {
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if at := cmd.ArgsLenAtDash(); at >= 0 && at < len(args) { // a command and its files
			return nil, cobra.ShellCompDirectiveDefault
		}
		if most >= 0 && len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		words, directive := complete.function()(cmd, args, begun)
		return slices.DeleteFunc(words,
			func(w string) bool { word, _, _ := strings.Cut(w, "\t"); return slices.Contains(args, word) }), directive
	}
}

// explained is a word with its explanation, for the shells that show it.
func explained(word, what string) string { return word + "\t" + show.Plain(show.FirstLine(what), 80) }

// JobNames are the configured jobs.
func JobNames(e Env) Completion {
	return func(ctx context.Context, cmd *cobra.Command, _ []string) []string {
		var names []string
		if c, err := Server(cmd, e); c != nil || err != nil {
			fromRemote(ctx, cmd, e, func(ctx context.Context, r operate.Operator) {
				s, _ := r.Snapshot(ctx)
				for _, j := range s.Jobs {
					names = append(names, explained(j.Name, j.Schedule))
				}
			})
			return names
		}
		c, err := LoadConfig(cmd, e)
		if err != nil {
			return nil
		}
		for _, j := range c.Jobs {
			names = append(names, explained(j.Name, j.Schedule))
		}
		return names
	}
}

// DatabaseNames are the configured databases.
func DatabaseNames(e Env) Completion {
	return func(_ context.Context, cmd *cobra.Command, _ []string) []string {
		var names []string
		c, err := LoadConfig(cmd, e)
		if err != nil {
			return nil
		}
		for name, d := range c.Databases {
			names = append(names, explained(name, d.Driver))
		}
		slices.Sort(names)
		return names
	}
}

// NodeNames are the nodes of the election that are there.
func NodeNames(e Env) Completion {
	return func(ctx context.Context, cmd *cobra.Command, _ []string) []string {
		var names []string
		fromRemote(ctx, cmd, e, func(ctx context.Context, r operate.Operator) {
			s, err := r.Snapshot(ctx)
			if err != nil {
				return
			}
			for _, n := range s.Nodes {
				names = append(names, explained(n.ID, n.State))
			}
		})
		return names
	}
}

// LockNames are the locks that are held, without the elections of the configuration: they are for its daemons.
func LockNames(e Env) Completion {
	return func(ctx context.Context, cmd *cobra.Command, _ []string) []string {
		var names []string
		c, err := LoadConfig(cmd, e)
		if err != nil {
			return nil
		}
		held, _ := lockcmd.List(ctx, c) // what cannot be read is not offered
		for _, l := range held {
			if slices.Contains(c.LockKeys(), l.Name) {
				continue
			}
			names = append(names, explained(l.Name, "held by "+cmp.Or(l.NodeID, "a program that is not baton")))
		}
		return names
	}
}

// lockKeys are the elections of the configuration.
func lockKeys(e Env) Completion {
	return func(_ context.Context, cmd *cobra.Command, _ []string) []string {
		c, err := LoadConfig(cmd, e)
		if err != nil {
			return nil
		}
		return c.LockKeys()
	}
}

// RunIDs are the runs of the job that is the first argument: those that go on, and the last ones unless
// only the former are meant.
func RunIDs(e Env, running bool) Completion {
	return func(ctx context.Context, cmd *cobra.Command, args []string) []string {
		var ids []string
		if len(args) == 0 {
			return nil
		}
		fromRemote(ctx, cmd, e, func(ctx context.Context, r operate.Operator) {
			if j, err := operate.JobOf(ctx, r, args[0]); err == nil {
				open := j.Open
				if len(open) == 0 && j.Running != nil {
					open = []diagnose.Run{*j.Running}
				}
				for _, run := range open {
					ids = append(ids, explained(run.ID, "running on "+run.NodeID))
				}
			}
			if past, err := operate.Runs(ctx, r, args[0], completedRuns); err == nil && !running {
				for _, run := range past {
					ids = append(ids, explained(run.ID, run.State+" "+show.Here(run.Started)))
				}
			}
		})
		return ids
	}
}

// LetterIDs are the newest dead letters.
func LetterIDs(e Env) Completion {
	return func(ctx context.Context, cmd *cobra.Command, _ []string) []string {
		var ids []string
		e.Stderr = io.Discard // an error would be written into the command line that is typed
		d, err := AsksLetters(cmd, e)
		if err != nil {
			return nil
		}
		database, _ := cmd.Flags().GetString("database")
		letters, _ := d.Letters(ctx, operate.LetterFilter{Database: database}, completedLetters)
		for _, l := range letters {
			ids = append(ids, explained(ShortID(l.ID), l.Job+": "+l.Error))
		}
		_ = d.Close() // its error would be written there, too
		return ids
	}
}

// fromRemote does a completion's work on an election.
func fromRemote(ctx context.Context, cmd *cobra.Command, e Env, work func(ctx context.Context, r operate.Operator)) {
	e.Stderr = io.Discard // an error would be written into the command line that is typed
	r, err := asks(cmd, e, LoadConfig)
	if err != nil {
		return
	}
	work(ctx, r)
	_ = r.Close() // its error would be written there, too
}
