package main

import (
	"os"
	"os/signal"

	"github.com/spf13/cobra"

	"baton/internal/command"
)

const wardenCommand = "warden"

// newWardenCommand is the process that baton starts beside a command that it runs.
func newWardenCommand() *cobra.Command {
	return &cobra.Command{
		Use:    wardenCommand + " -- COMMAND [ARGUMENT…]",
		Short:  "Watch over a command that baton runs; baton starts it by itself",
		Hidden: true,
		Args:   cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error {
			signals := make(chan os.Signal, 16)
			signal.Notify(signals, passedOn()...)
			defer signal.Stop(signals)
			return command.Warden(args, signals)
		},
	}
}
