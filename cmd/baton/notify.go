package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"baton/cmd/baton/internal/cmdline"
	"baton/cmd/baton/internal/show"
	"baton/internal/operate"
)

func newNotifyCommand(e cmdline.Env) *cobra.Command {
	return cmdline.Parent(&cobra.Command{
		Use:     "notify",
		Short:   "Test where notifications go",
		Example: "  baton notify test",
	}, newNotifyTestCommand(e))
}

func newNotifyTestCommand(e cmdline.Env) *cobra.Command {
	var out show.Output
	var socket string
	cmd := &cobra.Command{
		Use:   "test [TARGET]",
		Short: "Send a test notification from the daemon on this host",
		Long: "Let the daemon on this host send one test notification to TARGET, or to all\n" +
			"targets under notify in its configuration, and print the answers. The exit\n" +
			"code is 1 if a target did not accept it.",
		Example: "  baton notify test\n  baton notify test ops",
		Args:    cmdline.AtMostOneArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			o := operate.Order{Kind: operate.KindTestNotify, By: cmdline.UserName()}
			if len(args) > 0 {
				o.Target = args[0]
			}
			done, err := doOnHost(cmd, e, socket, o)
			if err != nil {
				return err
			}
			err = out.Print(e.Stdout, done, func(w io.Writer) error { return printTests(w, done.Tests) })
			return errors.Join(err, failedTests(done.Tests))
		},
	}
	addHostFlags(cmd, &socket)
	out.AddFlag(cmd, e.Getenv)
	return cmd
}

func printTests(w io.Writer, tests []operate.Tested) error {
	for _, t := range tests {
		text := "delivered"
		if !t.OK {
			text = "not delivered: " + t.Text
		}
		if err := show.Say(w, "%s: %s\n", t.Target, text); err != nil {
			return err
		}
	}
	return nil
}

// failedTests returns an error if a target has not accepted its test notification.
func failedTests(tests []operate.Tested) error {
	failed := 0
	for _, t := range tests {
		if !t.OK {
			failed++
		}
	}
	if failed == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d targets did not accept the test notification", failed, len(tests))
}
