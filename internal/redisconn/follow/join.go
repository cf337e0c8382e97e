package follow

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/redisconn"
)

// Master is the server to follow. Every Join calls Socket, so that a Join after a failover reaches the new master.
type Master struct {
	// Socket opens a connection and logs in.
	Socket func(ctx context.Context) (net.Conn, error)
	// Wait is the maximum wait for one reply.
	Wait time.Duration
}

// JoinKind says how a stream was joined.
type JoinKind int

// These are the ways to join a stream.
const (
	Began     JoinKind = iota + 1 // at the end of the stream; earlier changes were missed
	Continued                     // at a position of the caller
	Promoted                      // like Continued, but the master is a promoted replica: see Joined.Shared
	Resynced                      // after a skipped RDB; earlier changes were missed
)

func (h JoinKind) String() string {
	return [...]string{"?", "began", "continued", "promoted", "resynced"}[h]
}

// Joined is the result of a Join.
type Joined struct {
	Kind JoinKind
	// At is the position where the stream begins, which is the lowest of the caller's positions that the master accepts. At.ReplID
	// may differ from the ReplID of the caller's position.
	At Position
	// Shared is the offset at the end of the history that a promoted master and the old master share. We may have read later changes
	// from the old master, which the promoted master may not have.
	Shared int64
	// Lost contains for each of the caller's positions the reason why the stream cannot continue from the position, or the zero Loss if
	// it can.
	Lost []Loss
	// Why is the first reason in Lost, if the stream continues from none of the positions.
	Why Loss
	// Backlog is the number of bytes that the server keeps for followers that come back.
	Backlog int64
}

const joinTries = 3

// Join joins the stream of a master at the lowest of the positions in the argument from. If there is no such position, or the stream
// can continue from none of them, Join begins at the end of the stream. It ignores positions of the histories of other masters.
func Join(ctx context.Context, m Master, from ...Position) (*Stream, Joined, error) {
	refused := make([]Loss, len(from)) // positions that the server refused, although its INFO allows them
	for range joinTries {
		h, err := shake(ctx, m)
		if err != nil {
			return nil, Joined{}, err
		}
		s, joined, err := h.join(from, refused)
		h.release()
		var again againError
		switch {
		case err == nil:
			return s, joined, nil
		case errors.As(err, &again):
			_ = h.conn.Close()
			if again.active {
				if err := awaitBacklog(ctx, m); err != nil {
					return nil, Joined{}, err
				}
			}
			continue
		}
		_ = h.conn.Close()
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, Joined{}, err
	}
	return resync(ctx, m, len(from))
}

// againError means that the caller must join once more, on a new connection.
type againError struct {
	why    string
	active bool // a backlog was requested, and takes a moment
}

func (e againError) Error() string { return e.why }

// handshake is a connection before it becomes a stream.
type handshake struct {
	*reader
	wait    time.Duration
	info    info
	release func() // ends the goroutine that watches ctx
}

// shake opens a connection, introduces baton as a replica and reads the server's INFO.
func shake(ctx context.Context, m Master) (*handshake, error) {
	conn, err := m.Socket(ctx)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	h := &handshake{reader: newReader(conn), wait: m.Wait, release: func() { stop() }}
	if err := h.introduce(); err != nil {
		stop()
		_ = conn.Close()
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, err
	}
	return h, nil
}

func (h *handshake) introduce() error {
	// A Sentinel ignores a replica whose port is impossible.
	port := strconv.Itoa(redisconn.PortOfNone)
	for _, command := range [][]string{{"REPLCONF", "listening-port", port}, {"REPLCONF", "capa", "eof", "capa", "psync2"}} {
		if _, err := h.do(command...); err != nil {
			return err
		}
	}
	// If the server sends an RDB, baton needs no data in it. Servers before 7.0 do not know this option.
	if _, err := h.do("REPLCONF", "rdb-filter-only", ""); err != nil && !errors.As(err, new(redis.Error)) {
		return err
	}
	for _, section := range []string{"server", "replication"} {
		text, err := h.do("INFO", section)
		if err != nil {
			return err
		}
		if err := h.info.add(text); err != nil {
			return err
		}
	}
	switch {
	case h.info.stopping:
		return ErrStopping
	case h.info.role != "master":
		return notMaster(h.info.role)
	}
	return nil
}

// do sends one command of the handshake and returns its reply.
func (h *handshake) do(words ...string) (string, error) {
	if err := h.write(encode(words)); err != nil {
		return "", err
	}
	reply, err := h.reply(h.wait)
	return reply, explained(words[0], err)
}

func explained(command string, err error) error {
	var refusal redis.Error
	switch {
	case errors.As(err, &refusal):
		return refused(command, refusal)
	case err != nil:
		return fmt.Errorf("%s was not answered: %w", command, err)
	}
	return nil
}

// psync requests the stream from an offset on. It sends the first acknowledgement in the same packet. The reason is that from PSYNC
// on the server counts us as a replica at offset 0. If the server has no writes, FAILOVER would choose such a replica.
func (h *handshake) psync(replID string, from int64) (string, error) {
	if err := h.requestStream(replID, from); err != nil {
		return "", err
	}
	reply, err := h.reply(h.wait)
	return reply, explained("PSYNC", err)
}

func (h *handshake) requestStream(replID string, from int64) error {
	return h.write(append(encode([]string{"PSYNC", replID, strconv.FormatInt(from, 10)}), ack...))
}

func encode(words []string) []byte {
	request := redisconn.AppendCommand(nil, len(words), words[0])
	for _, word := range words[1:] {
		request = redisconn.AppendWord(request, word)
	}
	return request
}

func (h *handshake) write(request []byte) error {
	if err := h.conn.SetWriteDeadline(time.Now().Add(h.wait)); err != nil {
		return err
	}
	_, err := h.conn.Write(request)
	return err
}

// join chooses the position where the stream begins, and requests the stream from there on.
func (h *handshake) join(from []Position, refused []Loss) (*Stream, Joined, error) {
	joined := Joined{Kind: Began, Backlog: h.info.backlogSize, Lost: slices.Clone(refused)}
	least := -1
	for i, p := range from {
		if joined.Lost[i] == (Loss{}) {
			joined.Lost[i] = h.info.lacks(p)
		}
		if joined.Lost[i] == (Loss{}) && (least < 0 || p.Offset < from[least].Offset) {
			least = i
		}
	}
	if !h.info.backlog {
		return nil, Joined{}, h.activate()
	}
	at := Position{ReplID: h.info.replID, Offset: h.info.offset, DB: AnyDB}
	if least >= 0 {
		at, joined.Kind = from[least], Continued
	} else if len(from) > 0 {
		joined.Why = joined.Lost[0]
	}
	reply, err := h.psync(at.ReplID, at.Offset+1)
	if err != nil {
		return nil, Joined{}, err
	}
	answer := strings.Fields(reply)
	if len(answer) == 0 || answer[0] != "CONTINUE" {
		why := "the master no longer has the history after the position: " + reply
		if least >= 0 {
			refused[least] = Loss{LostBacklog, why}
		}
		return nil, Joined{}, againError{why: why}
	}
	if len(answer) > 1 && answer[1] != h.info.replID {
		return nil, Joined{}, againError{why: "the master changed during the handshake"}
	}
	if at.ReplID != h.info.replID {
		at.ReplID, joined.Kind = h.info.replID, Promoted
	}
	if h.info.shared > 0 {
		joined.Shared = h.info.shared
	}
	joined.At = at
	return newStream(h.reader, at), joined, nil
}

// activate makes the server create a backlog. For this purpose it requests the stream, because a server creates a backlog for its
// first replica. The server keeps the backlog for an hour after that replica has left (repl-backlog-ttl). activate waits only for a
// refusal, and reads nothing else of the reply.
func (h *handshake) activate() error {
	if err := h.requestStream("?", -1); err != nil {
		return err
	}
	_ = h.conn.SetReadDeadline(time.Now().Add(activateFor))
	if n, err := h.conn.Read(h.buf); n > 0 && h.buf[0] == '-' {
		var refusal redis.Error
		h.r, h.w = 0, n
		if _, err := h.reply(h.wait); errors.As(err, &refusal) {
			return refused("PSYNC", refusal)
		}
	} else if err != nil && !isTimeout(err) {
		return fmt.Errorf("PSYNC was not answered: %w", err)
	}
	return againError{why: "the master had no backlog", active: true}
}

// activateFor is how long activate waits for a refusal.
const activateFor = 50 * time.Millisecond

// awaitBacklog waits until the server has a backlog.
func awaitBacklog(ctx context.Context, m Master) error {
	for range 100 {
		h, err := shake(ctx, m)
		if err != nil {
			return err
		}
		h.release()
		_ = h.conn.Close()
		if h.info.backlog {
			return nil
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return fmt.Errorf("%w: the server keeps no replication backlog; is repl-backlog-size 0?", ErrRefused)
}
