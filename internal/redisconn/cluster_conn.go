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

// routed is a connection to the node of a Cluster that has one key. A command that
// is answered MOVED, ASK or TRYAGAIN was not executed, so it is sent again to where
// it belongs; and so are the commands of a pipeline, each by itself and after the
// others, unless there is a transaction among them.
type routed struct {
	redis.Conn // to node; another one after a MOVED
	cluster    *cluster
	node       *Server
	open       func(*Server, context.Context) (redis.Conn, error)

	asked   redis.Conn // where the last command was done, if that was somewhere else
	askedOf *Server    // whose connection that is
	scanned cursorPlace
	moved   bool

	sent        []Command // that wait for their replies
	transaction bool      // between WATCH or MULTI and its end: all of it is done, or nothing
	ends        bool      // its end is under way
}

// route opens a connection to the master of key's slot.
func (c *cluster) route(ctx context.Context, key string, open func(*Server, context.Context) (redis.Conn, error)) (redis.Conn, error) {
	slot := Slot(key)
	node, err := c.owner(ctx, slot)
	if err != nil {
		return nil, err
	}
	conn, err := open(node, ctx)
	if err != nil {
		// It may have a successor already, and nothing has been sent.
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

// note watches for transactions.
func (r *routed) note(name string) {
	switch strings.ToUpper(name) {
	case "WATCH", "MULTI":
		r.transaction, r.ends = true, false
	case "EXEC", "DISCARD", "UNWATCH":
		r.ends = true
	}
}

// Flush implements redis.Conn. Whoever receives by himself also follows by himself.
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
		if strings.ToUpper(name) == "WAIT" { // for what was written there
			return redis.DoContext(r.asked, ctx, name, args...)
		}
		r.leave()
	}
	reply, err := redis.DoContext(r.Conn, ctx, name, args...)
	replies, pipeline := reply.([]any)
	switch {
	case whole:
		return reply, err
	case name != "" && len(sent) == 0:
		return r.follow(ctx, Cmd(name, args...), reply, err)
	case name != "" || !pipeline || len(replies) != len(sent):
		return reply, err
	}
	for i := range replies {
		refusal, ok := replies[i].(redis.Error)
		if !ok || !IsElsewhere(refusal) {
			continue
		}
		again, err := r.follow(ctx, sent[i], nil, refusal)
		if refusal, ok = err.(redis.Error); ok { //nolint:errorlint // a reply is never wrapped
			again, err = refusal, nil
		}
		if err != nil {
			return nil, err
		}
		replies[i] = again
	}
	return replies, nil
}

// IsElsewhere reports whether a reply says that another node of the Cluster has the key,
// or will have it soon. The command was not done.
func IsElsewhere(err error) bool {
	refusal, ok := err.(redis.Error) //nolint:errorlint // a reply is never wrapped
	if !ok {
		return false
	}
	code := Code(refusal)
	return code == "MOVED" || code == "ASK" || code == "TRYAGAIN"
}

// follow sends a command again until it is done, a few times. TRYAGAIN is given up
// soon: it lasts until all keys of the command have been moved, and whoever sent it
// may have another way.
func (r *routed) follow(ctx context.Context, cmd Command, reply any, err error) (any, error) {
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
			reply, err = redis.DoContext(r.Conn, ctx, cmd.Name, cmd.Args...)
		case "ASK":
			reply, err = r.askAt(ctx, address, cmd)
		default: // TRYAGAIN
			select {
			case <-ctx.Done():
				return nil, err // what is known: it was not done
			case <-time.After(pause):
			}
			pause *= 2
			reply, err = redis.DoContext(r.Conn, ctx, cmd.Name, cmd.Args...)
		}
	}
	return reply, err
}

// switchTo goes on with the node that a slot was moved to.
func (r *routed) switchTo(ctx context.Context, slot, address string) error {
	n, err := strconv.Atoi(slot)
	if err != nil || n < 0 || n >= slotCount {
		return fmt.Errorf("redis %s moves slot %q to %q: is that a redis cluster?", r.node.address, slot, address)
	}
	node := r.cluster.at(r.absolute(address))
	if node == r.node {
		node.drop() // the address leads to another server than when we connected
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

// Err implements redis.Conn. A connection that was moved does what it was opened
// for, and is not kept: it leads to a server whose identity is not known.
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

// leave gives the connection of an ASK back to its pool.
func (r *routed) leave() {
	if r.asked != nil {
		_ = r.asked.Close() // its errors were those of its command
		r.asked, r.askedOf = nil, nil
	}
}

// askAt sends one command to the node that a slot is being moved to. The slot's
// other keys may still be at the old one.
func (r *routed) askAt(ctx context.Context, address string, cmd Command) (any, error) {
	conn, err := r.cluster.at(r.absolute(address)).Borrow(ctx)
	if err != nil {
		return nil, err
	}
	r.leave()
	r.asked, r.askedOf = conn, r.cluster.at(r.absolute(address))
	if _, err := redis.DoContext(conn, ctx, "ASKING"); err != nil {
		return nil, err
	}
	return redis.DoContext(conn, ctx, cmd.Name, cmd.Args...)
}

// absolute reads the address in a redirection, which may lack the host, and has no
// brackets around one of IPv6.
func (r *routed) absolute(address string) string {
	i := strings.LastIndexByte(address, ':')
	return nodeAddress(address[:max(i, 0)], address[i+1:], r.node.address)
}

// DoWithTimeout implements redis.ConnWithTimeout.
func (r *routed) DoWithTimeout(timeout time.Duration, name string, args ...any) (any, error) {
	return redis.DoWithTimeout(r.Conn, timeout, name, args...)
}

// ReceiveContext implements redis.ConnWithContext.
func (r *routed) ReceiveContext(ctx context.Context) (any, error) {
	return redis.ReceiveContext(r.Conn, ctx)
}

// ReceiveWithTimeout implements redis.ConnWithTimeout.
func (r *routed) ReceiveWithTimeout(timeout time.Duration) (any, error) {
	return redis.ReceiveWithTimeout(r.Conn, timeout)
}

// broken is a connection that there is not.
type broken struct{ err error }

func (b broken) Close() error                                           { return nil }
func (b broken) Err() error                                             { return b.err }
func (b broken) Do(string, ...any) (any, error)                         { return nil, b.err }
func (b broken) DoContext(context.Context, string, ...any) (any, error) { return nil, b.err }
func (b broken) ReceiveContext(context.Context) (any, error)            { return nil, b.err }
func (b broken) Send(string, ...any) error                              { return b.err }
func (b broken) Flush() error                                           { return b.err }
func (b broken) Receive() (any, error)                                  { return nil, b.err }

// cursorPlace is who has given a cursor of a scan.
type cursorPlace struct {
	conn  redis.Conn
	asked *Server
}

// scans notes who has done a step of a scan, and says whether that is who has given its
// cursor. A cursor means nothing to another server: the elements have another order there.
func (r *routed) scans(begins bool) bool {
	here := cursorPlace{r.Conn, r.askedOf}
	if here.asked != nil {
		here.conn = nil
	}
	same := begins || here == r.scanned
	r.scanned = here
	return same
}

// Unrouted is the connection to the server that a connection of a [Store] leads to now:
// commands on it go there whatever their keys.
func Unrouted(c redis.Conn) redis.Conn {
	if r, ok := c.(*routed); ok {
		return r.Conn
	}
	return c
}
