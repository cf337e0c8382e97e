package main

import (
	"errors"

	"github.com/spf13/cobra"
)

const wardenCommand = "warden"

// newWardenCommand returns the command that answers users who call the warden by hand. The warden is the process that baton starts to watch
// over a command. These processes never reach this command, because package warden handles them earlier.
func newWardenCommand() *cobra.Command {
	return &cobra.Command{
		Use:    wardenCommand,
		Short:  "Watch over a command that baton runs; baton starts it by itself",
		Hidden: true,
		Args:   cobra.ArbitraryArgs,
		RunE: func(*cobra.Command, []string) error {
			return errors.New("do not call this command by hand: baton starts it beside each command that it runs")
		},
	}
}
