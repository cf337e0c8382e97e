package follow

import (
	"errors"
	"fmt"
	"strings"

	"github.com/gomodule/redigo/redis"

	"baton/internal/redisconn"
)

// The errors of this package, matched by errors.Is. After all of them it is right to join again,
// after a pause.
var (
	// ErrNotMaster: the server is a replica, or has lost its master. A failover may be under way.
	ErrNotMaster = errors.New("not a master now")
	// ErrStopping: the server shuts down, and waits for its replicas until they have everything.
	ErrStopping = errors.New("the server is shutting down")
	// ErrLeft: the server waited for its replicas to acknowledge, and sent nothing else.
	ErrLeft = errors.New("left, so that the server need not wait for us")
	// ErrSilent: nothing came for longer than a master is ever silent.
	ErrSilent = errors.New("nothing came from the master")
	// ErrGarbled: the bytes received are no command. The position must not be used again.
	ErrGarbled = errors.New("the replication stream has something else than a command")
	// ErrRefused: this server, or this user, may not be followed. Waiting does not help.
	ErrRefused = errors.New("the replication stream is refused")
)

// remedyOfRefusal is an operator's remedy where the server refuses PSYNC.
const remedyOfRefusal = "use `type: scan`, which reads all keys again and again, or `type: hashes` with an index of changes"

// notMaster explains to an operator that a server has another role.
func notMaster(role string) error {
	return fmt.Errorf("%w: it is a %s; configure the address of its master, or the Sentinels; after a failover wait", ErrNotMaster, role)
}

// refused explains a server's refusal of a command of the handshake.
func refused(command string, refusal redis.Error) error {
	switch code := redisconn.Code(refusal); {
	case code == "NOMASTERLINK":
		return fmt.Errorf("%w: it is a replica without a link to its master (%w)", ErrNotMaster, refusal)
	case code == "NOPERM":
		return fmt.Errorf("%w: grant the user +psync +replconf +info +command by ACL SETUSER; it then sees every key, since key "+
			"patterns do not filter the stream (%s: %w)", ErrRefused, command, refusal)
	case strings.Contains(string(refusal), "unknown command"):
		return fmt.Errorf("%w: this service has no %s, or it was renamed; %s (%w)", ErrRefused, command, remedyOfRefusal, refusal)
	}
	return fmt.Errorf("%s: %w", command, redisconn.Explain(refusal))
}
