package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"baton/internal/operate"
	"baton/internal/text"
)

func newDeadDropCommand(e env) *cobra.Command {
	var out output
	var f deadFlags
	var yes bool
	cmd := &cobra.Command{
		Args:  cobra.ArbitraryArgs,
		Use:   "drop ID... | --job JOB --all",
		Short: "Remove dead letters for good",
		Long: "Remove dead letters for good: the records are lost, unless their source has them still.\n" +
			"On a terminal it asks first; elsewhere it wants --yes. Those of a job that is not in the\n" +
			"configuration any more are found with --database. Exit code 1 if one of the ids is not\n" +
			"there; then none is dropped.",
		Example: "  baton dead drop 3f2a9c41d07b --yes\n" +
			"  baton dead drop --job users --older-than 720h --yes\n" +
			"  baton dead drop --job old-job --database main --all --yes",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(); err != nil {
				return err
			}
			return withDead(cmd, e, func(d operate.Operator) error {
				keys, err := f.which(cmd, d, args)
				if err != nil {
					return err
				}
				if len(keys) > 0 && !yes {
					if err := confirm(cmd.Context(), e, fmt.Sprintf("Drop %s for good?", text.Count(len(keys), "dead letter"))); err != nil {
						return err
					}
				}
				line := newHowFar(e.stderr)
				gone := 0
				dropped, err := d.Do(cmd.Context(), operate.Order{
					Kind: operate.KindDrop, By: userName(), Letters: keys,
					Progress: func(some operate.Outcome) {
						gone += int(some.Dropped)
						line.tell(gone, len(keys), "dropped")
					},
				})
				line.clear()
				printed := out.print(e.stdout, map[string]int64{"dropped": dropped.Dropped}, func(w io.Writer) error {
					return say(w, "%s dropped\n", text.Count(int(dropped.Dropped), "dead letter"))
				})
				return errors.Join(err, printed)
			})
		},
	}
	addRemoteFlags(cmd, e)
	f.add(cmd, e)
	cmd.Flags().BoolVar(&f.all, "all", false, "all dead letters of the job")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	letterIDs(e).asArguments(cmd, -1)
	out.addFlag(cmd, e)
	return cmd
}

// confirm asks the person at the terminal. Ctrl-C is no.
func confirm(ctx context.Context, e env, question string) error {
	noTerminal := usageError(errors.New("add --yes: there is no terminal to ask at"))
	in, ok := e.stdin.(*os.File)
	if !ok || !isTerminal(in) {
		return noTerminal
	}
	if err := say(e.stderr, "%s [y/N] ", question); err != nil {
		return err
	}
	var answer string
	var err error
	read := make(chan struct{})
	go func() { // ends with the process, if nobody answers
		defer close(read)
		answer, err = bufio.NewReader(in).ReadString('\n')
	}()
	select {
	case <-read:
	case <-ctx.Done():
		_ = say(e.stderr, "\n")
		return &exitError{exitFailure, errors.New("nothing was changed")}
	}
	switch {
	case errors.Is(err, io.EOF) && answer == "": // such as /dev/null
		return noTerminal
	case err != nil && !errors.Is(err, io.EOF):
		return err
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return &exitError{exitFailure, errors.New("nothing was changed")}
}
