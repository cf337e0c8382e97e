package redislock

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"baton/internal/elector"
	"baton/internal/redisconn"
	"baton/internal/redislock/script"

	"github.com/cenkalti/backoff/v5"
	"github.com/gomodule/redigo/redis"
)

// baton pings an idle subscription. So it notices within pingInterval + pingTimeout that the peer has vanished without closing the
// connection.
const (
	pingInterval = time.Minute
	pingTimeout  = 15 * time.Second
	// outdatedInterval is the interval at which baton checks whether other connections to the server have failed. This shows a
	// failover even if the old master hangs and sends no hints.
	outdatedInterval = 3 * time.Second
)

// Watched names one election and the channel that gets its hints. One election may have several such channels. A hint is dropped if
// the channel Hints has no room.
type Watched struct {
	LockKey string
	Format  script.Format
	Hints   chan<- elector.Hint
	// Listening, if set, counts the subscriptions that work at present.
	Listening *atomic.Int32
	// Noted means that the index of this Redis has the lock, because a process holds it or wants it.
	Noted bool
}

// WatchAll subscribes to the wake channels of all elections on one connection. It delivers hints until ctx ends. When the connection
// breaks, it subscribes again. It also sends HintInterrupted and HintSubscribed.
func WatchAll(ctx context.Context, s *redisconn.Store, elections ...Watched) {
	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval, pause.MaxInterval = 100*time.Millisecond, 5*time.Second
	channels := map[string][]chan<- elector.Hint{}
	for _, w := range elections {
		wake := script.KeysOf(w.LockKey).Wake()
		channels[wake] = append(channels[wake], w.Hints)
		if w.Format == script.Redisson {
			foreign := redissonChannel(w.LockKey)
			channels[foreign] = append(channels[foreign], w.Hints)
		}
	}
	count := func(by int32) {
		for _, w := range elections {
			if w.Listening != nil {
				w.Listening.Add(by)
			}
		}
	}
	if len(channels) == 0 { // a nested command holds all of its locks already
		<-ctx.Done()
	}
	var noted []string
	for _, w := range elections {
		if w.Noted {
			noted = append(noted, w.LockKey)
		}
	}
	again := make(chan struct{}, 1)
	again <- struct{}{}
	var wg sync.WaitGroup
	defer wg.Wait()
	if len(noted) > 0 {
		wg.Go(func() { KeepNoted(ctx, s, again, noted...) })
	}
	for ctx.Err() == nil {
		// WatchAll does not log the error, because the lock's own attempts fail in the same way, and the elector logs that failure once.
		subscribed := false
		_ = listen(ctx, s, channels, func() {
			subscribed = true
			pause.Reset()
			count(1)
			select {
			case again <- struct{}{}:
			default:
			}
		})
		if subscribed {
			count(-1)
			for _, hints := range channels {
				offer(hints, elector.HintInterrupted)
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause.NextBackOff()):
		}
	}
}

// redissonChannel returns the channel on which Redisson announces that an RLock was unlocked.
func redissonChannel(lockKey string) string {
	if strings.Contains(lockKey, "{") {
		return "redisson_lock__channel:" + lockKey
	}
	return "redisson_lock__channel:{" + lockKey + "}"
}

// listen subscribes to the channels, and delivers their messages until the connection breaks or ctx ends. It calls the function
// subscribed once, as soon as it has subscribed to all channels.
func listen(ctx context.Context, s *redisconn.Store, channels map[string][]chan<- elector.Hint, subscribed func()) error {
	names := slices.Sorted(maps.Keys(channels))
	dial, cancelDial := context.WithTimeout(ctx, s.Timeout())
	defer cancelDial()
	conn, err := s.Dial(dial, names[0])
	if err != nil {
		return err
	}
	conn = redisconn.Unrouted(conn) // every node of a Cluster gets every message
	psc := redis.PubSubConn{Conn: conn}
	ctx, cancel := context.WithCancel(ctx)
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		probe(ctx, cancel, psc, conn.CutOff)
	}()
	defer func() {
		cancel()
		<-closed
	}()

	if err := psc.Subscribe(redis.Args{}.AddFlat(names)...); err != nil {
		return fmt.Errorf("subscribe to %s: %w", strings.Join(names, ", "), err)
	}
	for left := len(names); ; {
		switch m := psc.ReceiveWithTimeout(pingInterval + pingTimeout).(type) {
		case redis.Subscription:
			if left--; left == 0 {
				subscribed()
			}
			offer(channels[m.Channel], elector.HintSubscribed)
		case redis.Message:
			switch string(m.Data) {
			case "released", "0": // baton's message, or the message of an RLock
				offer(channels[m.Channel], elector.HintReleased)
			case "control":
				offer(channels[m.Channel], elector.HintControl)
			}
		case error:
			return m
		}
	}
}

// probe pings the peer until ctx ends. Then it closes the connection, so that a blocked Receive returns. Unless the peer was silent,
// probe first calls the function cutOff.
func probe(ctx context.Context, cancel context.CancelFunc, psc redis.PubSubConn, cutOff func()) {
	ping := time.NewTicker(pingInterval)
	defer ping.Stop()
	outdated := time.NewTicker(outdatedInterval)
	defer outdated.Stop()
	silent := false
	for {
		select {
		case <-ctx.Done():
			if !silent {
				cutOff()
			}
			_ = psc.Close() // its reader has gone
			return
		case <-outdated.C:
			if psc.Conn.Err() != nil {
				cancel()
			}
		case <-ping.C:
			if psc.Ping("") != nil {
				silent = true
				cancel()
			}
		}
	}
}

func offer(to []chan<- elector.Hint, h elector.Hint) {
	for _, hints := range to {
		select {
		case hints <- h:
		default:
		}
	}
}
