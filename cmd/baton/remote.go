package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"time"

	"github.com/spf13/cobra"

	"baton/internal/config"
	"baton/internal/daemon/adminsocket"
	"baton/internal/operate"
	"baton/internal/operate/direct"
)

// The variables that stand for the flags of a server.
const (
	serverEnv    = "BATON_SERVER"
	tokenFileEnv = "BATON_TOKEN_FILE"
	caFileEnv    = "BATON_CA_FILE"
)

// addRemoteFlags gives cmd what names an election, or a node to ask about it.
func addRemoteFlags(cmd *cobra.Command, e env) {
	addTargetFlags(cmd, e)
	addServerFlags(cmd)
	for _, direct := range []string{"config", "redis", "lock-key"} {
		cmd.MarkFlagsMutuallyExclusive("server", direct)
	}
}

func addServerFlags(cmd *cobra.Command) {
	flags := cmd.PersistentFlags()
	flags.String("server", "", "ask the node at this `URL`, and neither Redis nor a database: https://host:port, or unix:///path of its admin socket [$"+serverEnv+"]")
	flags.String("token-file", "", "`file` with the token for --server [$"+tokenFileEnv+"]")
	flags.String("ca-file", "", "`file` with certificates to trust for --server, beside the system's [$"+caFileEnv+"]")
	_ = cmd.MarkPersistentFlagFilename("token-file")
	_ = cmd.MarkPersistentFlagFilename("ca-file", "pem", "crt")
}

// flagOr is a flag, or else the variable that stands for it.
func flagOr(cmd *cobra.Command, e env, flag, variable string) string {
	if text, ok := givenFlags(cmd)(flag); ok {
		return text
	}
	text, _ := e.getenv(variable)
	return text
}

// server is the node that a command is to ask by its API; nil: none. Flags that name
// Redis go over the variable that names a server.
func server(cmd *cobra.Command, e env) (*operate.Client, error) {
	given := givenFlags(cmd)
	address, ok := given("server")
	switch {
	case ok && address == "":
		return nil, usageError(errors.New("--server is empty: want a URL"))
	case cmd.Flag("server") == nil:
		return nil, nil
	case !ok:
		for _, direct := range []string{"config", "redis", "lock-key"} {
			if _, ok := given(direct); ok {
				return nil, nil
			}
		}
		if address, _ = e.getenv(serverEnv); address == "" {
			return nil, nil
		}
	}
	c, err := operate.DialServer(address, flagOr(cmd, e, "token-file", tokenFileEnv), flagOr(cmd, e, "ca-file", caFileEnv))
	if err != nil {
		return nil, usageError(err)
	}
	return c, nil
}

// loader reads the configuration, as far as a command needs it: [loadConfig] or [loadElection].
type loader func(cmd *cobra.Command, e env) (config.Config, error)

// asks is what a command asks about elections and jobs: a node, or Redis itself.
func asks(cmd *cobra.Command, e env, load loader) (operate.Operator, error) {
	return asksBy(cmd, e, load, direct.Open)
}

func asksBy(cmd *cobra.Command, e env, load loader, open func(config.Config) (*direct.Site, error)) (operate.Operator, error) {
	c, err := server(cmd, e)
	if err != nil || c != nil {
		return c, err
	}
	return openOrAsk(cmd, e, load, func(c config.Config) (operate.Operator, error) { return open(c) })
}

// asksLetters is what a command asks about dead letters: a node, or the databases.
func asksLetters(cmd *cobra.Command, e env) (operate.Operator, error) {
	return asksBy(cmd, e, loadConfig, direct.OpenLetters)
}

// openOrAsk opens what the configuration names. Who may not read it, or a secret that it
// names, but may use the admin socket of this host's daemon, asks that.
func openOrAsk[T any](cmd *cobra.Command, e env, load loader, open func(config.Config) (T, error)) (opened T, err error) {
	c, err := load(cmd, e)
	if err == nil {
		opened, err = open(c)
	}
	if err == nil || cmd.Flag("server") == nil {
		return opened, err
	}
	socket := adminsocket.Path(e.getenv)
	client, unusable := local(cmd, socket)
	if !errors.Is(err, fs.ErrPermission) {
		if unusable == nil {
			err = fmt.Errorf("%w\nthe daemon of this host runs all the same; ask it: --server unix://%s", err, socket)
		}
		return opened, err
	}
	if asked, ok := any(client).(T); ok && unusable == nil {
		_ = say(e.stderr, "baton: asking the daemon of this host at %s, since %v\n", socket, cause(err))
		return asked, nil
	}
	var none T
	return none, fmt.Errorf("%w\nor ask a node: --server https://host:port, or as a member of its group --server unix://%s (%w)", err, socket, unusable)
}

// cause is the file that may not be read.
func cause(err error) error {
	if file, ok := errors.AsType[*fs.PathError](err); ok {
		return file
	}
	return err
}

// local is the daemon of this host, if it takes orders of this user. Flags that name
// another installation than the daemon's own speak against it.
func local(cmd *cobra.Command, socket string) (*operate.Client, error) {
	for _, direct := range []string{"config", "redis", "lock-key"} {
		if _, ok := givenFlags(cmd)(direct); ok {
			return nil, fmt.Errorf("not asked by itself, because of --%s", direct)
		}
	}
	conn, err := net.DialTimeout("unix", socket, time.Second)
	if err != nil {
		return nil, reason(err)
	}
	_ = conn.Close() // it was asked whether it answers, and nothing else
	return operate.DialSocket(socket)
}

// reason is an error of the system without what it was about.
func reason(err error) error {
	for _, known := range []error{fs.ErrNotExist, fs.ErrPermission, os.ErrDeadlineExceeded} {
		if errors.Is(err, known) {
			return known
		}
	}
	return err
}

// withRemote does a command's work on an election.
func withRemote(cmd *cobra.Command, e env, work func(r operate.Operator) error) error {
	return with(cmd, e, loadConfig, work)
}

// withElection does a command's work on who leads, which no job's source is needed for.
func withElection(cmd *cobra.Command, e env, work func(r operate.Operator) error) error {
	return with(cmd, e, loadElection, work)
}

func with(cmd *cobra.Command, e env, load loader, work func(r operate.Operator) error) error {
	r, err := asks(cmd, e, load)
	if err != nil {
		return err
	}
	return errors.Join(work(r), r.Close())
}
