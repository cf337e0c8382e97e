package main

import (
	"errors"
	"io"

	"github.com/spf13/cobra"

	"baton/internal/daemon/adminsocket"
	"baton/internal/operate"
)

func newReloadCommand(e env) *cobra.Command {
	var out output
	var socket string
	cmd := &cobra.Command{
		Use:   "reload",
		Short: "Have the daemon on this host read its configuration again",
		Long: "Have the daemon on this host read its configuration again, and say what is wrong with it, as\n" +
			"config check does: then the old one stays in force, all of it. Runs that go on are untouched.\n" +
			"SIGHUP does the same, and tells the log alone. What belongs to the node (node, redis, election,\n" +
			"http) takes a restart.",
		Example: "  baton config check && baton reload\n  systemctl reload baton",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := reload(cmd, e, socket); err != nil {
				return err
			}
			return out.print(e.stdout, map[string]bool{"reloaded": true}, func(w io.Writer) error { return say(w, "reloaded\n") })
		},
	}
	cmd.Flags().StringVar(&socket, "socket", "", "the daemon's admin `socket` (default admin.sock in $RUNTIME_DIRECTORY, else /run/baton)")
	addServerFlags(cmd)
	cmd.MarkFlagsMutuallyExclusive("server", "socket")
	out.addFlag(cmd, e)
	return cmd
}

// reload asks the daemon of this host, or the node that --server names.
func reload(cmd *cobra.Command, e env, socket string) error {
	var node *operate.Client
	var err error
	if socket == "" {
		node, err = server(cmd, e)
		socket = adminsocket.Path(e.getenv)
	}
	if err == nil && node == nil {
		node, err = operate.DialSocket(socket)
	}
	if err != nil {
		return err
	}
	_, err = node.Do(cmd.Context(), operate.Order{Kind: operate.KindReload, By: userName()})
	return errors.Join(err, node.Close())
}
