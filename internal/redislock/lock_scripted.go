package redislock

import (
	"context"
	"fmt"
	"strconv"

	"baton/internal/elector"
	"baton/internal/redisconn"

	"github.com/gomodule/redigo/redis"
)

// scripted runs the Lua scripts of the lock. Each method makes one attempt, on a connection to the server that has the lock key. Redis
// executes each script atomically.
type scripted struct {
	participant
	scripts *lockScripts
}

// acquire tries to get the lock. The function seen returns the candidate's memory. acquire calls it again before every request,
// because a lease may have ended while a slow reply was on its way.
func (p scripted) acquire(ctx context.Context, conn redis.Conn, c elector.Candidate, seen func() memory) (acquireReply, error) {
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
			c.Owner, p.ttlMS, p.nodeID, *p.nodeInfo.Load(), c.Floor, p.priority, role, elector.ReserveFor.Milliseconds(), m.leaseMS,
			m.early, asked))
		if err != nil {
			return acquireReply{}, err
		}
		var v acquireReply
		rest, err := redis.Scan(reply, &v.word, &v.detail, &v.left, &v.epoch, &v.leaseMS)
		switch {
		case err != nil || len(rest) == 0:
		case v.word == "wait":
			_, err = redis.Scan(rest, &v.about)
		default:
			_, err = redis.Scan(rest, &v.freeMS)
		}
		if err != nil {
			return acquireReply{}, fmt.Errorf("unexpected reply: %w", err)
		}
		if v.word != "prove" {
			return v, nil
		}
		asked = v.detail // repeated until ctx ends, because a reply that takes a second proves nothing
	}
}

// renew renews the lock. If the owner does not hold it, renew returns ErrLost with the present holder in its text. If fresh is true, this
// is the first renewal on conn, so the server may be another server, or may have restarted. If withPresence is true, renew also writes the
// node's entry.
func (p scripted) renew(ctx context.Context, conn redis.Conn, owner string, epoch int64, fresh, withPresence bool) (elector.Order, error) {
	k, first, presence := p.keys, 0, ""
	if fresh {
		first = 1
	}
	if withPresence {
		presence = *p.nodeInfo.Load()
	}
	proof := ""
	for {
		reply, err := redis.Strings(p.scripts.renew.DoContext(ctx, conn, k.Lock(), k.Nodes(), k.Control(), k.Term(), k.Events(),
			k.Quarantine(),
			owner, p.ttlMS, p.nodeID, presence, epoch, first, proof))
		elsewhere := redisconn.IsElsewhere(err)
		switch {
		case err != nil && !elsewhere:
			return elector.Order{}, err
		case elsewhere || reply[0] == "prove" && proof == "": // a second request, which must not be sent past H
			if expired := elector.Expired(ctx); expired != nil {
				return elector.Order{}, expired
			} else if elsewhere {
				return elector.Order{}, p.extend(ctx, conn, owner, err)
			}
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

// errForgets means that Redis has asked for a second proof, because it lost its data after the first request. The renewal has
// changed nothing.
var errForgets = fmt.Errorf("%w: redis has lost its data between two requests", elector.ErrRefused)

// extend renews only the lock key. It is called when the server has refused the script of renew, because a Cluster is moving the
// slot to another node. One of these two nodes always has the lock key. Orders wait until one node has all keys again.
func (p scripted) extend(ctx context.Context, conn redis.Conn, owner string, refused error) error {
	holder, err := redis.String(p.scripts.extend.DoContext(ctx, conn, p.keys.Lock(), owner, p.ttlMS))
	switch {
	case err != nil:
		return err
	case holder == "":
		return refused // only the other keys show whether the lock is lost, or must be restored
	case holder != owner:
		return lost(holder)
	}
	return nil
}

// release releases the lock. It reports whether the owner held it.
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

// lost returns an error that matches ErrLost and names the holder.
func lost(holder string) error {
	if holder == "" {
		return fmt.Errorf("nobody holds it: %w", elector.ErrLost)
	}
	return fmt.Errorf("%s holds it: %w", holder, elector.ErrLost)
}
