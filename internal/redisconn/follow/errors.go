package follow

import (
	"errors"
	"fmt"
	"strings"

	"github.com/gomodule/redigo/redis"

	"baton/internal/redisconn"
)

// These are the errors of this package, matched by errors.Is. After each of these errors the caller may join again, after a pause.
var (
	// ErrNotMaster means that the server is a replica, or has lost its master. A failover may be in progress.
	ErrNotMaster = errors.New("the server is not a master now")
	// ErrStopping means that the server shuts down, and waits until its replicas have everything.
	ErrStopping = errors.New("the server is shutting down")
	// ErrLeft means that Follow has left a server that waited for acknowledgements of its replicas and sent nothing else.
	ErrLeft = errors.New("baton disconnected, so that the server does not wait for it as for a replica")
	// ErrSilent means that the master sent nothing for longer than a master is ever silent.
	ErrSilent = errors.New("the master sent nothing")
	// ErrGarbled means that the received bytes are no command. The position must not be used again.
	ErrGarbled = errors.New("the replication stream has bytes that are not a command")
	// ErrRefused means that this server does not let baton, or this user, follow it. Waiting does not help.
	ErrRefused = errors.New("the replication stream is refused")
)

// remedyOfRefusal is the advice to an operator if the server refuses PSYNC.
const remedyOfRefusal = "use `type: scan`, which reads all keys again and again, or `type: hashes` with an index of changes"

// notMaster returns the error for a server that is not a master.
func notMaster(role string) error {
	return fmt.Errorf("%w: it is a %s; configure the address of its master, or the Sentinels; after a failover, wait", ErrNotMaster, role)
}

// refused returns an error that explains why the server refused a command of the handshake.
func refused(command string, refusal redis.Error) error {
	switch code := redisconn.Code(refusal); {
	case code == "NOMASTERLINK":
		return fmt.Errorf("%w: it is a replica without a link to its master (%w)", ErrNotMaster, refusal)
	case code == "NOPERM":
		return fmt.Errorf("%w: grant the user +psync +replconf +info +command by ACL SETUSER; the user then sees every key, because "+
			"key patterns do not filter the stream (%s: %w)", ErrRefused, command, refusal)
	case strings.Contains(string(refusal), "unknown command"):
		return fmt.Errorf("%w: this server has no command %s, or has renamed it; %s (%w)", ErrRefused, command, remedyOfRefusal, refusal)
	}
	return fmt.Errorf("%s: %w", command, redisconn.Explain(refusal))
}
