package redisstore

import (
	"context"
	"fmt"
	"time"

	"baton/internal/elector"

	"github.com/cenkalti/backoff/v5"
	"github.com/gomodule/redigo/redis"
)

// A subscription on which nothing comes is probed, so that a peer that vanished
// without a word is noticed within pingInterval + pingTimeout.
const (
	pingInterval = 30 * time.Second
	pingTimeout  = 15 * time.Second
)

// Watch listens on the election's wake channel and passes hints on until ctx
// ends. It subscribes again, for ever, when the connection breaks, and says so by
// HintSubscribed. A hint for which hints has no room is dropped: it is only a hint.
func (s *Store) Watch(ctx context.Context, lockKey string, hints chan<- elector.Hint) {
	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval, pause.MaxInterval = 100*time.Millisecond, 5*time.Second
	for ctx.Err() == nil {
		subscribed := func() {
			pause.Reset()
			offer(hints, elector.HintSubscribed)
		}
		// The error is not told: the lock's own attempts meet the same trouble,
		// and the elector tells that once.
		_ = s.listen(ctx, newKeys(lockKey).wake(), subscribed, hints)
		select {
		case <-ctx.Done():
		case <-time.After(pause.NextBackOff()):
		}
	}
}

// listen subscribes and passes messages on until the connection breaks or ctx ends.
func (s *Store) listen(ctx context.Context, channel string, subscribed func(), hints chan<- elector.Hint) error {
	dial, cancelDial := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancelDial()
	conn, err := s.Dial(dial, channel)
	if err != nil {
		return err
	}
	if r, ok := conn.(*routed); ok {
		conn = r.Conn // every node of a Cluster hears of every message
	}
	psc := redis.PubSubConn{Conn: conn}
	// Closing is what makes a blocked Receive return. It also ends the pinger.
	ctx, cancel := context.WithCancel(ctx)
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		ping := time.NewTicker(pingInterval)
		defer ping.Stop()
		for {
			select {
			case <-ctx.Done():
				_ = psc.Close()
				return
			case <-ping.C:
				if psc.Ping("") != nil {
					cancel()
				}
			}
		}
	}()
	defer func() {
		cancel()
		<-closed
	}()

	if err := psc.Subscribe(channel); err != nil {
		return fmt.Errorf("subscribe to %s: %w", channel, err)
	}
	for {
		switch m := psc.ReceiveWithTimeout(pingInterval + pingTimeout).(type) {
		case redis.Subscription:
			subscribed()
		case redis.Message:
			switch string(m.Data) {
			case "released":
				offer(hints, elector.HintReleased)
			case "control":
				offer(hints, elector.HintControl)
			}
		case error:
			return m
		}
	}
}

func offer(hints chan<- elector.Hint, h elector.Hint) {
	select {
	case hints <- h:
	default:
	}
}
