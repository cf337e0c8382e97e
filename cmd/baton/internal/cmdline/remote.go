package cmdline

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"time"

	"github.com/spf13/cobra"

	"baton/cmd/baton/internal/show"
	"baton/internal/config"
	"baton/internal/daemon/adminsocket"
	"baton/internal/operate"
	"baton/internal/operate/direct"
)

// The variables that stand for the flags of a server.
const (
	ServerEnv    = "BATON_SERVER"
	TokenFileEnv = "BATON_TOKEN_FILE"
	CaFileEnv    = "BATON_CA_FILE"
)

// AddRemoteFlags gives cmd what names an election, or a node to ask about it.
func AddRemoteFlags(cmd *cobra.Command, e Env) {
	AddTargetFlags(cmd, e)
	AddServerFlags(cmd)
	for _, direct := range []string{"config", "redis", "lock-key"} {
		cmd.MarkFlagsMutuallyExclusive("server", direct)
	}
}

// AddServerFlags gives cmd what names a node to ask.
func AddServerFlags(cmd *cobra.Command) {
	flags := cmd.PersistentFlags()
	flags.String("server", "", "ask the node at this `URL`, and neither Redis nor a database: https://host:port, "+
		"or unix:///path of its admin socket [$"+ServerEnv+"]")
	flags.String("token-file", "", "`file` with the token for --server [$"+TokenFileEnv+"]")
	flags.String("ca-file", "", "`file` with certificates to trust for --server, beside the system's [$"+CaFileEnv+"]")
	_ = cmd.MarkPersistentFlagFilename("token-file")
	_ = cmd.MarkPersistentFlagFilename("ca-file", "pem", "crt")
}

// flagOr is a flag, or else the variable that stands for it.
func flagOr(cmd *cobra.Command, e Env, flag, variable string) string {
	if text, ok := GivenFlags(cmd)(flag); ok {
		return text
	}
	text, _ := e.Getenv(variable)
	return text
}

// Server is the node that a command is to ask by its API; nil: none. Flags that name
// Redis go over the variable that names a server.
func Server(cmd *cobra.Command, e Env) (*operate.Client, error) {
	given := GivenFlags(cmd)
	address, ok := given("server")
	switch {
	case ok && address == "":
		return nil, UsageError(errors.New("--server is empty: want a URL"))
	case cmd.Flag("server") == nil:
		return nil, nil
	case !ok:
		for _, direct := range []string{"config", "redis", "lock-key"} {
			if _, ok := given(direct); ok {
				return nil, nil
			}
		}
		if address, _ = e.Getenv(ServerEnv); address == "" {
			return nil, nil
		}
	}
	c, err := operate.DialServer(address, flagOr(cmd, e, "token-file", TokenFileEnv), flagOr(cmd, e, "ca-file", CaFileEnv))
	if err != nil {
		return nil, UsageError(err)
	}
	return c, nil
}

// loader reads the configuration, as far as a command needs it: [LoadConfig] or [LoadElection].
type loader func(cmd *cobra.Command, e Env) (config.Config, error)

// asks returns the operator that a command queries about elections and jobs: a node, or Redis itself.
func asks(cmd *cobra.Command, e Env, load loader) (operate.Operator, error) {
	return asksBy(cmd, e, load, direct.Open)
}

func asksBy(cmd *cobra.Command, e Env, load loader, open func(config.Config) (*direct.Site, error)) (operate.Operator, error) {
	c, err := Server(cmd, e)
	if err != nil || c != nil {
		return c, err
	}
	return OpenOrAsk(cmd, e, load, func(c config.Config) (operate.Operator, error) { return open(c) })
}

// AsksLetters returns the operator that a command queries about dead letters: a node, or the databases.
func AsksLetters(cmd *cobra.Command, e Env) (operate.Operator, error) {
	return asksBy(cmd, e, LoadConfig, direct.OpenLetters)
}

// OpenOrAsk opens the servers that the configuration names. If the user may not read it, or a
// secret that it names, but may use the admin socket of this host's daemon, it asks the daemon.
func OpenOrAsk[T any](cmd *cobra.Command, e Env, load loader, open func(config.Config) (T, error)) (opened T, err error) {
	c, err := load(cmd, e)
	if err == nil {
		opened, err = open(c)
	}
	if err == nil || cmd.Flag("server") == nil {
		return opened, err
	}
	socket := adminsocket.Path(e.Getenv)
	client, unusable := local(cmd, socket)
	if !errors.Is(err, fs.ErrPermission) {
		if unusable == nil {
			err = fmt.Errorf("%w\nthe daemon of this host runs all the same; ask it: --server unix://%s", err, socket)
		}
		return opened, err
	}
	if asked, ok := any(client).(T); ok && unusable == nil {
		_ = show.Say(e.Stderr, "baton: asking the daemon of this host at %s, since %v\n", socket, cause(err))
		return asked, nil
	}
	var none T
	return none, fmt.Errorf("%w\nor ask a node: --server https://host:port, "+
		"or as a member of %s --server unix://%s (%w)", err, operate.GroupOf(socket), socket, unusable)
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
		if _, ok := GivenFlags(cmd)(direct); ok {
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

// reason is an error of the system without its path and operation.
func reason(err error) error {
	for _, known := range []error{fs.ErrNotExist, fs.ErrPermission, os.ErrDeadlineExceeded} {
		if errors.Is(err, known) {
			return known
		}
	}
	return err
}

// WithRemote does a command's work on an election.
func WithRemote(cmd *cobra.Command, e Env, work func(r operate.Operator) error) error {
	return with(cmd, e, LoadConfig, work)
}

// WithElection does a command's work on the election, which needs no job's source.
func WithElection(cmd *cobra.Command, e Env, work func(r operate.Operator) error) error {
	return with(cmd, e, LoadElection, work)
}

func with(cmd *cobra.Command, e Env, load loader, work func(r operate.Operator) error) error {
	r, err := asks(cmd, e, load)
	if err != nil {
		return err
	}
	return errors.Join(work(r), r.Close())
}
