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
	// completeWithin is the maximum time that a completion waits for a server.
	completeWithin = 500 * time.Millisecond
	// completedRuns and completedLetters limit the number of ids that are offered. The newest ids are offered.
	completedRuns    = 20
	completedLetters = 50
)

// Completion returns the words that the shell may offer at the cursor. In each returned word, the text after a tab is an explanation that
// the shell shows. If anything fails, the list is empty, because an error message would appear in the command line that the user types.
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
		case <-ctx.Done(): // a function that ignores ctx ends with the process
		}
		words = slices.DeleteFunc(words, func(w string) bool { return !strings.HasPrefix(w, begun) })
		return words, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
}

// AsFlag makes the shell complete a flag's value with this Completion.
func (complete Completion) AsFlag(cmd *cobra.Command, flag string) {
	_ = cmd.RegisterFlagCompletionFunc(flag, complete.function())
}

// AsArguments makes the shell complete arguments with this Completion. The shell completes the first arguments of
// the command line, up to the number in most, or all arguments if that number is negative.
func (complete Completion) AsArguments(cmd *cobra.Command, most int) {
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if at := cmd.ArgsLenAtDash(); at >= 0 && at < len(args) { // after -- come a command and its files
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

// explained returns a word with its explanation, because some shells show explanations.
func explained(word, what string) string { return word + "\t" + show.Plain(show.FirstLine(what), 80) }

// JobNames completes the names of the configured jobs.
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

// DatabaseNames completes the names of the configured databases.
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

// NodeNames completes the names of the live nodes of the election.
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

// LockNames completes the names of the held locks. It does not offer the locks of the configuration's elections, because these locks belong
// to baton's daemons.
func LockNames(e Env) Completion {
	return func(ctx context.Context, cmd *cobra.Command, _ []string) []string {
		var names []string
		c, err := LoadConfig(cmd, e)
		if err != nil {
			return nil
		}
		held, _ := lockcmd.List(ctx, c) // locks that cannot be read are not offered
		for _, l := range held {
			if slices.Contains(c.LockKeys(), l.Name) {
				continue
			}
			names = append(names, explained(l.Name, "held by "+cmp.Or(l.NodeID, "a program that is not baton")))
		}
		return names
	}
}

// lockKeys completes the lock keys of the configuration's elections.
func lockKeys(e Env) Completion {
	return func(_ context.Context, cmd *cobra.Command, _ []string) []string {
		c, err := LoadConfig(cmd, e)
		if err != nil {
			return nil
		}
		return c.LockKeys()
	}
}

// RunIDs completes the ids of the runs of the job that the first argument names. It offers the runs in progress and, unless running is set,
// the last runs.
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

// LetterIDs completes the ids of the newest dead letters.
func LetterIDs(e Env) Completion {
	return func(ctx context.Context, cmd *cobra.Command, _ []string) []string {
		var ids []string
		e.Stderr = io.Discard // an error message would appear in the command line that the user types
		d, err := AsksLetters(cmd, e)
		if err != nil {
			return nil
		}
		database, _ := cmd.Flags().GetString("database")
		letters, _ := d.Letters(ctx, operate.LetterFilter{Database: database}, completedLetters)
		for _, l := range letters {
			ids = append(ids, explained(ShortID(l.ID), l.Job+": "+l.Error))
		}
		_ = d.Close() // an error message would appear in the command line that the user types
		return ids
	}
}

// fromRemote runs the function work with an operator, which reads the state of an election for the completion. If there is no operator,
// fromRemote does nothing.
func fromRemote(ctx context.Context, cmd *cobra.Command, e Env, work func(ctx context.Context, r operate.Operator)) {
	e.Stderr = io.Discard // an error message would appear in the command line that the user types
	r, err := asks(cmd, e, LoadConfig)
	if err != nil {
		return
	}
	work(ctx, r)
	_ = r.Close() // an error message would appear in the command line that the user types
}
