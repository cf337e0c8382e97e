package redisconn

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"
)

// routed is a connection to the node of a Cluster that has a certain key. A node that answers MOVED, ASK or TRYAGAIN has not
// executed the command, so routed sends the command again to the right node. It does the same for the commands of a pipeline, one
// after the other, unless they contain a transaction.
type routed struct {
	Conn    // the connection to node; a MOVED replaces it
	cluster *cluster
	node    *Server
	open    func(*Server, context.Context) (Conn, error)

	asked   Conn    // the connection that executed the last command, if that was not Conn
	askedOf *Server // the server of asked
	scanned cursorPlace
	moved   bool

	sent        []Command // the commands that wait for their replies
	transaction bool      // WATCH or MULTI was sent, and the transaction has not ended: all of its commands are executed, or none
	ends        bool      // the command that ends the transaction was sent
}

// route opens a connection to the master of key's slot.
func (c *cluster) route(ctx context.Context, key string, open func(*Server, context.Context) (Conn, error)) (Conn, error) {
	slot := Slot(key)
	node, err := c.owner(ctx, slot)
	if err != nil {
		return nil, err
	}
	conn, err := open(node, ctx)
	if err != nil {
		// No command was sent yet. A failover may have given the slot to another node.
		if other, lookupErr := c.owner(ctx, slot); lookupErr == nil && other != node {
			node = other
			conn, err = open(node, ctx)
		}
	}
	if err != nil {
		return nil, err
	}
	return &routed{Conn: conn, cluster: c, node: node, open: open}, nil
}

// Send implements redis.Conn.
func (r *routed) Send(name string, args ...any) error {
	r.note(name)
	r.sent = append(r.sent, Cmd(name, slices.Clone(args)...))
	return r.Conn.Send(name, args...)
}

// note records whether the connection is inside a transaction.
func (r *routed) note(name string) {
	switch strings.ToUpper(name) {
	case "WATCH", "MULTI":
		r.transaction, r.ends = true, false
	case "EXEC", "DISCARD", "UNWATCH":
		r.ends = true
	}
}

// Flush implements redis.Conn. A caller that reads replies with Receive must follow redirections itself.
func (r *routed) Flush() error {
	r.sent = nil
	return r.Conn.Flush()
}

// Do implements redis.Conn.
func (r *routed) Do(name string, args ...any) (any, error) {
	return r.DoContext(context.Background(), name, args...)
}

// DoContext implements redis.ConnWithContext.
func (r *routed) DoContext(ctx context.Context, name string, args ...any) (any, error) {
	r.note(name)
	sent, whole := r.sent, r.transaction
	r.sent = nil
	if r.ends {
		r.transaction, r.ends = false, false
	}
	if r.asked != nil {
		if strings.ToUpper(name) == "WAIT" { // WAIT counts the writes of the connection that it is sent on
			return r.asked.DoContext(ctx, name, args...)
		}
		r.leave()
	}
	reply, err := r.Conn.DoContext(ctx, name, args...)
	replies, pipeline := reply.([]any)
	switch {
	case whole:
		return reply, err
	case name != "" && len(sent) == 0:
		return r.follow(ctx, Cmd(name, args...).on, reply, err)
	case name != "" || !pipeline || len(replies) != len(sent):
		return reply, err
	}
	for i := range replies {
		if !IsElsewhere(replies[i]) {
			continue
		}
		again, err := r.follow(ctx, sent[i].on, nil, replies[i].(redis.Error))
		if refusal, ok := err.(redis.Error); ok { //nolint:errorlint // a reply is never wrapped
			again, err = refusal, nil
		}
		if err != nil {
			return nil, err
		}
		replies[i] = again
	}
	return replies, nil
}

// IsElsewhere reports whether a reply redirects the caller to another node of the Cluster. In that case the command was not
// executed.
func IsElsewhere(reply any) bool {
	refusal, ok := reply.(redis.Error)
	if !ok {
		return false
	}
	code := Code(refusal)
	return code == "MOVED" || code == "ASK" || code == "TRYAGAIN"
}

// on sends the command over the connection conn.
func (c Command) on(ctx context.Context, conn Conn) (any, error) {
	return conn.DoContext(ctx, c.Name, c.Args...)
}

// follow sends a redirected command again, up to four times. A node answers TRYAGAIN until the Cluster has moved all keys of the
// command. follow may give up before that time, because the caller may be able to do its work in another way.
func (r *routed) follow(ctx context.Context, send func(context.Context, Conn) (any, error), reply any, err error) (any, error) {
	pause := 5 * time.Millisecond
	for range 4 {
		if !IsElsewhere(err) {
			break
		}
		code, rest, _ := strings.Cut(err.Error(), " ")
		slot, address, _ := strings.Cut(rest, " ")
		switch code {
		case "MOVED":
			if err := r.switchTo(ctx, slot, address); err != nil {
				return nil, err
			}
			reply, err = send(ctx, r.Conn)
		case "ASK":
			if err := r.askAt(ctx, address); err != nil {
				return nil, err
			}
			reply, err = send(ctx, r.asked)
		default: // TRYAGAIN
			select {
			case <-ctx.Done():
				return nil, err // the command was certainly not executed
			case <-time.After(pause):
			}
			pause *= 2
			reply, err = send(ctx, r.Conn)
		}
	}
	return reply, err
}

// switchTo replaces the connection with a connection to the node that has the slot now.
func (r *routed) switchTo(ctx context.Context, slot, address string) error {
	n, err := strconv.Atoi(slot)
	if err != nil || n < 0 || n >= slotCount {
		return fmt.Errorf("redis %s moves slot %q to %q: is that a redis cluster?", r.node.address, slot, address)
	}
	node := r.cluster.at(r.absolute(address))
	if node == r.node {
		node.drop() // the address belongs to another server now
	}
	r.cluster.moved(n, node.address)
	_ = r.Conn.Close() // it goes back to its pool, which closes it
	r.Conn, err = r.open(node, ctx)
	if err != nil {
		r.Conn = broken{err}
		return err
	}
	r.node, r.moved = node, true
	return nil
}

// Err implements redis.Conn. A connection that has followed a MOVED does not go back to a pool after its present use, because the
// identity of its server was not checked.
func (r *routed) Err() error {
	if r.moved {
		return errUnfit
	}
	return r.Conn.Err()
}

// Close implements redis.Conn.
func (r *routed) Close() error {
	r.leave()
	return r.Conn.Close()
}

// leave gives the connection that was used for an ASK redirection back to its pool.
func (r *routed) leave() {
	if r.asked != nil {
		_ = r.asked.Close() // its errors were already returned by its command
		r.asked, r.askedOf = nil, nil
	}
}

// askAt prepares the node at address to execute one command for a slot that is being moved there. The old node may still have other
// keys of the slot.
func (r *routed) askAt(ctx context.Context, address string) error {
	node := r.cluster.at(r.absolute(address))
	conn, err := node.Borrow(ctx)
	if err != nil {
		return err
	}
	r.leave()
	r.asked, r.askedOf = conn, node
	_, err = conn.DoContext(ctx, "ASKING")
	return err
}

// absolute completes the address of a redirection, which may lack the host, or the brackets of an IPv6 address.
func (r *routed) absolute(address string) string {
	i := strings.LastIndexByte(address, ':')
	return nodeAddress(address[:max(i, 0)], address[i+1:], r.node.address)
}

// ScanKey implements [Conn]. It sends one command at a time, because the next command may be redirected to another node, which does not
// know the cursor.
func (r *routed) ScanKey(
	ctx context.Context, command, key, cursor string, pace *Pace, enough func() bool, each func(element []byte),
) (next string, err error) {
	for {
		begins := cursor == "0"
		one := func(ctx context.Context, c Conn) (any, error) {
			return c.ScanKey(ctx, command, key, cursor, pace, func() bool { return true }, each)
		}
		r.leave()
		reply, err := one(ctx, r.Conn)
		if reply, err = r.follow(ctx, one, reply, err); err != nil {
			return "", err
		}
		if cursor = reply.(string); !r.scans(begins) {
			return "", fmt.Errorf("key %q was moved to another node of the Cluster while it was scanned; the next run reads it again", key)
		}
		if cursor == "0" || enough() {
			return cursor, nil
		}
	}
}

// cursorPlace identifies the server that has returned the cursor of a scan.
type cursorPlace struct {
	conn  Conn
	asked *Server
}

// scans reports whether the server of this step has also returned the cursor that the step uses. The argument begins is true in the
// first step, which uses no cursor. scans also records this server for the next step. A cursor means nothing to another server,
// which has the elements in another order.
func (r *routed) scans(begins bool) bool {
	here := cursorPlace{r.Conn, r.askedOf}
	if here.asked != nil {
		here.conn = nil
	}
	same := begins || here == r.scanned
	r.scanned = here
	return same
}

// Unrouted returns the connection that c uses now, without the routing by slots. It sends every command to the same server, whatever
// key the command has.
func Unrouted(c Conn) Conn {
	if r, ok := c.(*routed); ok {
		return r.Conn
	}
	return c
}
