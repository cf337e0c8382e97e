package main

import (
	"errors"

	"github.com/spf13/cobra"
)

const wardenCommand = "warden"

// newWardenCommand is for a call by hand. What baton starts beside a command that it
// runs never comes here: package warden has begun before.
func newWardenCommand() *cobra.Command {
	return &cobra.Command{
		Use:    wardenCommand,
		Short:  "Watch over a command that baton runs; baton starts it by itself",
		Hidden: true,
		Args:   cobra.ArbitraryArgs,
		RunE: func(*cobra.Command, []string) error {
			return errors.New("this is no command to be called by hand: baton starts it beside a command that it runs")
		},
	}
}
