package redislock

import (
	"context"
	"fmt"
	"strconv"

	"baton/internal/elector"
	"baton/internal/redisconn"

	"github.com/gomodule/redigo/redis"
)

// scripted asks by Lua scripts. Each method is one attempt on a connection to the server that
// has the lock key, and one step for Redis.
type scripted struct {
	participant
	scripts *lockScripts
}

// acquire asks what the candidate has seen anew whenever Redis has answered: an answer
// that was on its way for long shows an end that was due meanwhile.
func (p scripted) acquire(ctx context.Context, conn redis.Conn, c elector.Candidate, seen func() memory) (verdict, error) {
	k, role := p.keys, 0
	switch {
	case c.Observer:
		role = 1
	case c.Courteous:
		role = 2
	}
	for asked := ""; ; {
		m := seen()
		reply, err := redis.Values(p.scripts.acquire.DoContext(ctx, conn, k.Lock(), k.Term(), k.Nodes(), k.Control(), k.Events(),
			k.Quarantine(),
			c.Owner, p.ttlMS, p.nodeID, *p.presence.Load(), c.Floor, p.priority, role, elector.ReserveFor.Milliseconds(), m.leaseMS,
			m.early, asked))
		if err != nil {
			return verdict{}, err
		}
		var v verdict
		rest, err := redis.Scan(reply, &v.word, &v.detail, &v.left, &v.epoch, &v.leaseMS)
		if err == nil && len(rest) > 0 {
			_, err = redis.Scan(rest, &v.freeMS)
		}
		if err != nil {
			return verdict{}, fmt.Errorf("unexpected reply: %w", err)
		}
		if v.word != "prove" {
			return v, nil
		}
		asked = v.detail // without end, but for that of ctx: an answer that takes a second proves nothing
	}
}

// renew returns ErrLost, and who holds the lock instead, in its error. fresh says that it is
// the first renewal on conn: the server behind it may be another, or have restarted. tell says
// to write the node's presence, too.
func (p scripted) renew(ctx context.Context, conn redis.Conn, owner string, epoch int64, fresh, tell bool) (elector.Order, error) {
	k, first, presence := p.keys, 0, ""
	if fresh {
		first = 1
	}
	if tell {
		presence = *p.presence.Load()
	}
	proof := ""
	for {
		reply, err := redis.Strings(p.scripts.renew.DoContext(ctx, conn, k.Lock(), k.Nodes(), k.Control(), k.Term(), k.Events(),
			k.Quarantine(),
			owner, p.ttlMS, p.nodeID, presence, epoch, first, proof))
		switch {
		case redisconn.IsElsewhere(err):
			return elector.Order{}, p.extend(ctx, conn, owner, err)
		case err != nil:
			return elector.Order{}, err
		case reply[0] == "prove" && proof == "":
			proof = reply[1]
		case reply[0] == "prove":
			return elector.Order{}, errForgets
		case reply[0] == "lost":
			return elector.Order{}, lost(reply[1])
		default:
			return elector.Order{StepDown: reply[1] == "1", To: reply[2], Reason: reply[3]}, nil
		}
	}
}

// errForgets leaves the lease as it was: the next renewal asks for another proof.
var errForgets = fmt.Errorf("%w: redis has lost its data between two requests", elector.ErrRefused)

// extend renews while a Cluster moves the slot, which is why renew was refused. The
// lock key alone is always on one node or the other. Orders wait until all keys are.
func (p scripted) extend(ctx context.Context, conn redis.Conn, owner string, refused error) error {
	holder, err := redis.String(p.scripts.extend.DoContext(ctx, conn, p.keys.Lock(), owner, p.ttlMS))
	switch {
	case err != nil:
		return err
	case holder == "":
		return refused // whether it is lost, and may be put back, takes a look at the other keys
	case holder != owner:
		return lost(holder)
	}
	return nil
}

// release reports whether the lock was the owner's.
func (p scripted) release(ctx context.Context, conn redis.Conn, owner string, h elector.Handover) (bool, error) {
	k := p.keys
	return redis.Bool(p.scripts.release.DoContext(ctx, conn, k.Lock(), k.Term(), k.Control(), k.Events(),
		owner, p.nodeID, h.Event, h.Reason, h.To, elector.ReserveFor.Milliseconds(), k.Wake()))
}

func (p scripted) raise(ctx context.Context, conn redis.Conn, owner string, floor int64) (int64, error) {
	reply, err := redis.String(p.scripts.raise.DoContext(ctx, conn, p.keys.Lock(), p.keys.Term(), owner, floor))
	if err != nil {
		return 0, err
	}
	if reply == "lost" {
		return 0, elector.ErrLost
	}
	return strconv.ParseInt(reply, 10, 64)
}

// lost says who holds the lock instead.
func lost(holder string) error {
	if holder == "" {
		return fmt.Errorf("nobody holds it: %w", elector.ErrLost)
	}
	return fmt.Errorf("%s holds it: %w", holder, elector.ErrLost)
}
