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

// These environment variables can replace the flags that name a server.
const (
	ServerEnv    = "BATON_SERVER"
	TokenFileEnv = "BATON_TOKEN_FILE"
	CaFileEnv    = "BATON_CA_FILE"
)

// AddRemoteFlags adds to cmd the flags that name an election, and the flags that name a node which answers for the election.
func AddRemoteFlags(cmd *cobra.Command, e Env) {
	AddTargetFlags(cmd, e)
	AddServerFlags(cmd)
	for _, direct := range []string{"config", "redis", "lock-key"} {
		cmd.MarkFlagsMutuallyExclusive("server", direct)
	}
}

// AddServerFlags adds to cmd the flags that name a node to ask.
func AddServerFlags(cmd *cobra.Command) {
	flags := cmd.PersistentFlags()
	flags.String("server", "", "ask the node at this `URL` instead of Redis and the databases: https://host:port, "+
		"or unix:///path of its admin socket [$"+ServerEnv+"]")
	flags.String("token-file", "", "`file` with the token for --server [$"+TokenFileEnv+"]")
	flags.String("ca-file", "", "`file` with further certificates to trust for --server [$"+CaFileEnv+"]")
	_ = cmd.MarkPersistentFlagFilename("token-file")
	_ = cmd.MarkPersistentFlagFilename("ca-file", "pem", "crt")
}

// flagOr returns the value of a flag, or else the value of the variable that can replace the flag.
func flagOr(cmd *cobra.Command, e Env, flag, variable string) string {
	if text, ok := GivenFlags(cmd)(flag); ok {
		return text
	}
	text, _ := e.Getenv(variable)
	return text
}

// Server returns the client of the node that a command must ask through its API, or nil if no node is named. Flags that name Redis override
// the variable that names a server.
func Server(cmd *cobra.Command, e Env) (*operate.Client, error) {
	given := GivenFlags(cmd)
	address, ok := given("server")
	switch {
	case ok && address == "":
		return nil, UsageError(errors.New("--server is empty: give a URL"))
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

// loader loads the part of the configuration that a command needs. It is [LoadConfig] or [LoadElection].
type loader func(cmd *cobra.Command, e Env) (config.Config, error)

// asks returns the operator for questions about elections and jobs. The operator asks a node, or reads Redis and the databases directly.
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

// AsksLetters returns the operator for questions about dead letters. The operator asks a node, or reads the databases directly.
func AsksLetters(cmd *cobra.Command, e Env) (operate.Operator, error) {
	return asksBy(cmd, e, LoadConfig, direct.OpenLetters)
}

// OpenOrAsk opens the servers that the configuration names. If the user may not read the configuration or one of its secrets, but may use
// the admin socket of this host's daemon, OpenOrAsk asks the daemon.
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
			err = fmt.Errorf("%w\nthe daemon of this host is running; to ask it, add --server unix://%s", err, socket)
		}
		return opened, err
	}
	if asked, ok := any(client).(T); ok && unusable == nil {
		_ = show.Say(e.Stderr, "baton: asking the daemon of this host at %s, because %v\n", socket, cause(err))
		return asked, nil
	}
	var none T
	return none, fmt.Errorf("%w\nor ask a node: --server https://host:port, "+
		"or as a member of %s --server unix://%s (%w)", err, operate.GroupOf(socket), socket, unusable)
}

// cause returns the part of err that names the unreadable file.
func cause(err error) error {
	if file, ok := errors.AsType[*fs.PathError](err); ok {
		return file
	}
	return err
}

// local returns a client of this host's daemon, if the daemon accepts orders from this user. It returns no client if flags name another
// installation than the daemon's own.
func local(cmd *cobra.Command, socket string) (*operate.Client, error) {
	for _, direct := range []string{"config", "redis", "lock-key"} {
		if _, ok := GivenFlags(cmd)(direct); ok {
			return nil, fmt.Errorf("the daemon of this host was not asked, because --%s is given", direct)
		}
	}
	conn, err := net.DialTimeout("unix", socket, time.Second)
	if err != nil {
		return nil, reason(err)
	}
	_ = conn.Close() // the connection was only a test whether the daemon answers
	return operate.DialSocket(socket)
}

// reason returns the error of the operating system that err contains, without the path and the operation.
func reason(err error) error {
	for _, known := range []error{fs.ErrNotExist, fs.ErrPermission, os.ErrDeadlineExceeded} {
		if errors.Is(err, known) {
			return known
		}
	}
	return err
}

// WithRemote runs the function work with the operator of an election. The configuration must be valid for all jobs.
func WithRemote(cmd *cobra.Command, e Env, work func(r operate.Operator) error) error {
	return with(cmd, e, LoadConfig, work)
}

// WithElection runs the function work with the operator of an election. It does not validate flushes.
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
