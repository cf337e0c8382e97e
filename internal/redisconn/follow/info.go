package follow

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/gomodule/redigo/redis"

	"baton/internal/redisconn"
)

// info contains the values of INFO that describe a server and its replication history.
type info struct {
	role     string
	stopping bool   // the server shuts down, and waits for its replicas
	replID   string // the ID of the server's history
	offset   int64  // the length of that history, in bytes
	oldID    string // the ID of the former master's history, if the server is a promoted replica
	shared   int64  // the length of the part that both histories have in common

	backlog            bool
	backlogSize        int64
	oldest, oldestSize int64 // the first byte of the backlog, counted from 1, and the number of its bytes
}

// Head asks a master for the position at the end of its replication history. It returns ErrNotMaster if the server is no master.
func Head(ctx context.Context, c redis.Conn) (Position, error) {
	text, err := redis.String(redis.DoContext(c, ctx, "INFO", "replication"))
	if err != nil {
		return Position{}, redisconn.Explain(err)
	}
	var i info
	if err := i.add(text); err != nil {
		return Position{}, err
	}
	if i.role != "master" {
		return Position{}, notMaster(i.role)
	}
	return Position{ReplID: i.replID, Offset: i.offset, DB: AnyDB}, nil
}

// add parses a reply of INFO and adds its values to i.
func (i *info) add(text string) error {
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		var number *int64
		switch name {
		case "role":
			i.role = value
		case "shutdown_in_milliseconds":
			i.stopping = true
		case "master_replid":
			i.replID = value
		case "master_replid2":
			i.oldID = value
		case "repl_backlog_active":
			i.backlog = value == "1"
		case "master_repl_offset":
			number = &i.offset
		case "second_repl_offset":
			number = &i.shared
		case "repl_backlog_size":
			number = &i.backlogSize
		case "repl_backlog_first_byte_offset":
			number = &i.oldest
		case "repl_backlog_histlen":
			number = &i.oldestSize
		}
		if number == nil {
			continue
		}
		var err error
		if *number, err = strconv.ParseInt(value, 10, 64); err != nil {
			return fmt.Errorf("%w: INFO says %s", ErrGarbled, line)
		}
		if name == "second_repl_offset" {
			i.shared-- // INFO gives the first byte that is not shared
		}
	}
	return nil
}

// Loss is the reason why a stream cannot continue from a position.
type Loss struct {
	Code  LossCode
	Words string
}

// LossCode is a code that tells programs the reason of a [Loss].
type LossCode string

// These are the reasons why a stream cannot continue from a position.
const (
	LostHistory  LossCode = "history"  // the master has another history
	LostFailover LossCode = "failover" // a promoted replica did not have the whole history of its master
	LostBacklog  LossCode = "backlog"  // the master no longer keeps the changes after the position
)

// lacks returns the reason why the server cannot continue from a position, or the zero Loss if it can. We check this before we ask the
// server, because a server that cannot continue would send all its data.
func (i *info) lacks(p Position) Loss {
	switch {
	case p.ReplID != i.replID && (p.ReplID != i.oldID || i.shared < 0):
		return Loss{LostHistory, fmt.Sprintf("the master has another history (%s) than the position (%s): the master lost its "+
			"history in a "+
			"restart, or was replaced", i.replID, p.ReplID)}
	case p.ReplID != i.replID && p.Offset > i.shared:
		return Loss{LostFailover, fmt.Sprintf("the position (%d) is after the last change that the promoted master had received (%d)",
			p.Offset, i.shared)}
	case !i.backlog:
		return Loss{LostBacklog, "the master no longer has a backlog (repl-backlog-ttl)"}
	case p.Offset+1 < i.oldest:
		return Loss{LostBacklog, fmt.Sprintf("the backlog begins %d bytes after the position: it is too small for this outage; "+
			"raise repl-backlog-size (now %d)", i.oldest-p.Offset-1, i.backlogSize)}
	case p.Offset > i.offset:
		return Loss{LostHistory, fmt.Sprintf("the position (%d) is after the end of the master's history (%d)", p.Offset, i.offset)}
	}
	return Loss{}
}
