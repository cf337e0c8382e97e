package redislock

import (
	"context"
	"fmt"
	"strconv"

	"baton/internal/elector"
	"baton/internal/redisconn"

	"github.com/gomodule/redigo/redis"
)

// scripted runs the protocol's Lua scripts. Each method is one attempt on a connection to the
// server that has the lock key, and atomic in Redis.
type scripted struct {
	participant
	scripts *lockScripts
}

// acquire calls seen again after every reply: a lease may have ended while a slow reply was
// under way.
func (p scripted) acquire(ctx context.Context, conn redis.Conn, c elector.Candidate, seen func() memory) (verdict, error) {
	k, role := p.keys, 0
	switch {
	case c.Observer:
		role = 1
	case c.Deferring:
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
		switch {
		case err != nil || len(rest) == 0:
		case v.word == "wait":
			_, err = redis.Scan(rest, &v.about)
		default:
			_, err = redis.Scan(rest, &v.freeMS)
		}
		if err != nil {
			return verdict{}, fmt.Errorf("unexpected reply: %w", err)
		}
		if v.word != "prove" {
			return v, nil
		}
		asked = v.detail // until ctx ends: a reply that takes a second proves nothing
	}
}

// renew returns ErrLost with the present holder in its text. fresh: it is the first renewal on
// conn, so the server may be another one or have restarted. withPresence: also write the node's
// presence.
func (p scripted) renew(ctx context.Context, conn redis.Conn, owner string, epoch int64, fresh, withPresence bool) (elector.Order, error) {
	k, first, presence := p.keys, 0, ""
	if fresh {
		first = 1
	}
	if withPresence {
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
			o := elector.Order{StepDown: reply[1] == "1", To: reply[2], Reason: reply[3], Code: elector.Code(reply[4])}
			if o.Code == elector.CodePaused {
				o.Reason = waitWords(o.Code, o.Reason)
			}
			return o, nil
		}
	}
}

// errForgets leaves the lease as it was: the next renewal asks for another proof.
var errForgets = fmt.Errorf("%w: redis has lost its data between two requests", elector.ErrRefused)

// extend renews the lock key alone, after renew was refused because a Cluster moves the slot.
// That key is always on one node or the other. Orders wait until all keys are.
func (p scripted) extend(ctx context.Context, conn redis.Conn, owner string, refused error) error {
	holder, err := redis.String(p.scripts.extend.DoContext(ctx, conn, p.keys.Lock(), owner, p.ttlMS))
	switch {
	case err != nil:
		return err
	case holder == "":
		return refused // lost or to be restored: only the other keys can say
	case holder != owner:
		return lost(holder)
	}
	return nil
}

// release reports whether the lock was the owner's.
func (p scripted) release(ctx context.Context, conn redis.Conn, owner string, h elector.Handover) (bool, error) {
	k := p.keys
	return redis.Bool(p.scripts.release.DoContext(ctx, conn, k.Lock(), k.Term(), k.Control(), k.Events(),
		owner, p.nodeID, h.Event, h.Reason, string(h.Code), h.To, elector.ReserveFor.Milliseconds(), k.Wake()))
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

// lost is ErrLost with the holder in its text.
func lost(holder string) error {
	if holder == "" {
		return fmt.Errorf("nobody holds it: %w", elector.ErrLost)
	}
	return fmt.Errorf("%s holds it: %w", holder, elector.ErrLost)
}
