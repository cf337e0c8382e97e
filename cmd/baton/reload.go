package main

import (
	"errors"
	"io"

	"github.com/spf13/cobra"

	"baton/cmd/baton/internal/cmdline"
	"baton/cmd/baton/internal/show"
	"baton/internal/daemon/adminsocket"
	"baton/internal/operate"
)

func newReloadCommand(e cmdline.Env) *cobra.Command {
	var out show.Output
	var socket string
	cmd := &cobra.Command{
		Use:   "reload",
		Short: "Reload the configuration of the daemon on this host",
		Long: "Reload the configuration of the daemon on this host, as SIGHUP does. If the\n" +
			"file has mistakes, they are printed as by `baton config check`, and the whole\n" +
			"old configuration stays in force. Runs in progress continue unchanged. A\n" +
			"change in the sections node, redis, election or http needs a restart.",
		Example: "  baton config check && baton reload\n  systemctl reload baton",
		Args:    cmdline.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, err := doOnHost(cmd, e, socket, operate.Order{Kind: operate.KindReload, By: cmdline.UserName()}); err != nil {
				return err
			}
			return out.Print(e.Stdout, map[string]bool{"reloaded": true}, func(w io.Writer) error { return show.Say(w, "reloaded\n") })
		},
	}
	addHostFlags(cmd, &socket)
	out.AddFlag(cmd, e.Getenv)
	return cmd
}

// doOnHost gives an order to the daemon of this host, or to the node that --server names.
func doOnHost(cmd *cobra.Command, e cmdline.Env, socket string, o operate.Order) (operate.Outcome, error) {
	var node *operate.Client
	var err error
	if socket == "" {
		node, err = cmdline.Server(cmd, e)
		socket = adminsocket.Path(e.Getenv)
	}
	if err == nil && node == nil {
		node, err = operate.DialSocket(socket)
	}
	if err != nil {
		return operate.Outcome{}, err
	}
	out, err := node.Do(cmd.Context(), o)
	return out, errors.Join(err, node.Close())
}

// addHostFlags adds the flags that select the daemon for doOnHost.
func addHostFlags(cmd *cobra.Command, socket *string) {
	cmd.Flags().StringVar(socket, "socket", "", "the daemon's admin `socket` (default admin.sock in $RUNTIME_DIRECTORY, else /run/baton)")
	cmdline.AddServerFlags(cmd)
	cmd.MarkFlagsMutuallyExclusive("server", "socket")
}
