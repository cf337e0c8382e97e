package rig

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"
)

// Monitor counts the commands that a Redis executes between two INFO commands of the caller. It reads the commands by MONITOR.
type Monitor struct {
	Sent  map[string]int // by clients
	Inner map[string]int // called by scripts

	conn redis.Conn
	done chan error
}

// StartMonitor starts a Monitor. Sent and Inner may be read after Stop.
func StartMonitor(dial func() (redis.Conn, error)) (*Monitor, error) {
	conn, err := dial()
	if err != nil {
		return nil, err
	}
	if _, err := conn.Do("MONITOR"); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	m := &Monitor{conn: conn, Sent: map[string]int{}, Inner: map[string]int{}, done: make(chan error, 1)}
	go func() { m.done <- m.follow() }()
	return m, nil
}

func (m *Monitor) follow() error {
	for infos := 0; infos < 2; {
		line, err := redis.String(redis.ReceiveWithTimeout(m.conn, 5*time.Minute))
		if err != nil {
			return fmt.Errorf("follow MONITOR: %w", err)
		}
		name, script := monitored(line)
		switch {
		case name == "info" && !script:
			infos++
		case infos == 1 && script:
			m.Inner[name]++
		case infos == 1:
			m.Sent[name]++
		}
	}
	return nil
}

// monitored parses a line like 1339518083.107412 [0 127.0.0.1:60866] "get" "key". It returns the name of the command, and whether a
// script called the command.
func monitored(line string) (name string, script bool) {
	_, rest, _ := strings.Cut(line, "[")
	client, rest, _ := strings.Cut(rest, "]")
	name, _, _ = strings.Cut(strings.TrimPrefix(rest, ` "`), `"`)
	return strings.ToLower(name), strings.HasSuffix(client, " lua")
}

// Stop waits until the Monitor has read the second INFO.
func (m *Monitor) Stop() error {
	var err error
	select {
	case err = <-m.done:
	case <-time.After(30 * time.Second):
		err = errors.New("MONITOR does not show our own INFO")
	}
	return errors.Join(err, m.conn.Close())
}

// Rates contains numbers of commands per second.
type Rates struct{ Sent, Inner float64 }

// CommandsOf counts the commands of a Redis for the time d. During that time no other client may send INFO.
func CommandsOf(ctx context.Context, dial func() (redis.Conn, error), d time.Duration) (r Rates, err error) {
	m, err := StartMonitor(dial)
	if err != nil {
		return r, err
	}
	conn, err := dial()
	if err != nil {
		return r, errors.Join(err, m.conn.Close())
	}
	defer conn.Close()
	_, err = conn.Do("INFO", "server")
	began := time.Now()
	select {
	case <-ctx.Done():
		err = errors.Join(err, ctx.Err())
	case <-time.After(d):
	}
	_, second := conn.Do("INFO", "server")
	took := time.Since(began).Seconds()
	if err := errors.Join(err, second, m.Stop()); err != nil {
		return r, err
	}
	for _, n := range m.Sent {
		r.Sent += float64(n) / took
	}
	for _, n := range m.Inner {
		r.Inner += float64(n) / took
	}
	return r, nil
}
