package linear

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"baton/internal/heartbeat"
	"baton/internal/redisconn"
	"baton/internal/redislock/script"
	"baton/internal/testsupport"
	"baton/test/linear/wire"

	"github.com/gomodule/redigo/redis"
)

// These are the faults of a master with replicas and Sentinels.
const (
	masterKill    kind = "SIGKILL of the master"
	masterFreeze  kind = "SIGSTOP of the master"
	replicaKill   kind = "SIGKILL of a replica"
	replicaFreeze kind = "SIGSTOP of a replica"
	sentinelKill  kind = "SIGKILL of a Sentinel"
)

// replicated contains a master and two replicas, which keep nothing on disk, behind three Sentinels. The lock waits for one replica.
//
// Its lease is only as long as the trust window. Sentinel tells clients of the new master
// and the remaining replica at almost the same time, but not at the same. In between, an
// old master that was frozen and goes on just then may renew with that replica's consent,
// when the quarantine on the new master has begun already: by so little that the trust
// window, which ends a margin before the lease, still ends before the quarantine does.
// What takes two servers that fail at once, a replica that stays with the old master, is
// the limit of one replica: only one server at a time is broken here.
type replicated struct {
	servers *testsupport.Sentinel
	data    []*testsupport.RedisDaemon
	node    [nodes][]*testsupport.Proxy // first the data servers, then the Sentinels
}

func newReplicated(t *testing.T) ground {
	t.Helper()
	g := &replicated{servers: testsupport.StartSentinel(t)}
	g.data = g.servers.Daemon().Data()
	for i := range g.node {
		var renamed []string // port of a server, port of the node's way to it, ...
		for _, d := range g.data {
			p := testsupport.NewProxy(t, d.Addr())
			g.node[i] = append(g.node[i], p)
			renamed = append(renamed, bulk(d.Addr()), bulk(p.Addr()))
		}
		for _, address := range g.servers.Addresses() {
			g.node[i] = append(g.node[i], testsupport.NewProxy(t, relay(t, address, strings.NewReplacer(renamed...))))
		}
	}
	return g
}

// bulk returns the port of an address in the form in which Redis writes it in a list.
func bulk(address string) string {
	_, port, _ := net.SplitHostPort(address) // it is one
	return fmt.Sprintf("$%d\r\n%s\r\n", len(port), port)
}

// relay forwards to target and rewrites the answers of target, so that a Sentinel directs a node to the node's own way. It returns the
// address where it listens.
func relay(t *testing.T, target string, rewrite *strings.Replacer) string {
	t.Helper()
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var work sync.WaitGroup
	t.Cleanup(func() {
		_ = ln.Close()
		work.Wait()
	})
	work.Go(func() {
		for {
			client, err := ln.Accept()
			if err != nil {
				return
			}
			work.Go(func() { relayOne(client, target, rewrite) })
		}
	})
	return ln.Addr().String()
}

func relayOne(client net.Conn, target string, rewrite *strings.Replacer) {
	defer client.Close() // either way it is over
	server, err := net.Dial("tcp4", target)
	if err != nil {
		return
	}
	var requests sync.WaitGroup
	requests.Go(func() {
		_, _ = io.Copy(server, client)
		_ = server.Close() // this ends the replies
	})
	buf := make([]byte, 16<<10)
	for {
		n, err := server.Read(buf)
		if _, werr := rewrite.WriteString(client, string(bytes.Clone(buf[:n]))); err != nil || werr != nil {
			break
		}
	}
	_ = client.Close() // this ends the requests
	requests.Wait()
}

func (g *replicated) tell(node int, s *wire.Setup) {
	s.Master = g.servers.Name()
	for _, p := range g.node[node][len(g.data):] {
		s.Sentinels = append(s.Sentinels, p.Addr())
	}
}

// ways returns all ways, or some of them: to data servers or to Sentinels.
func (g *replicated) ways(node int, draw uint64) []*testsupport.Proxy {
	return some(g.node[node], draw)
}

func (g *replicated) margin() time.Duration { return heartbeat.DefaultMargin(lease) }

func (g *replicated) stepDown(ctx context.Context) error {
	return stepDownBy(ctx, redisconn.Options{
		Sentinel: &redisconn.SentinelOptions{Master: g.servers.Name(), Addresses: g.servers.Addresses()},
	}, script.String)
}

// A server that does nothing for 500 ms is replaced. The replacement takes one to three seconds.
func (g *replicated) traits() []trait {
	return []trait{
		{masterKill, atStore, 4, 0, 3},
		{masterFreeze, atStore, 4, 0.25, 3},
		{replicaKill, atStore, 1, 0, 1},
		{replicaFreeze, atStore, 1, 0.25, 2},
		{sentinelKill, atOther, 1, 0, 2},
	}
}

func (g *replicated) begin(f fault) (target string, end func() error, err error) {
	if f.kind == sentinelKill {
		s := g.servers.Sentinels()[f.draw%3]
		return s.Addr(), s.Daemon().Restart, s.Daemon().Kill()
	}
	master, err := g.servers.Daemon().AwaitMaster(nil)
	if err != nil {
		return "", nil, err
	}
	d := master
	if f.kind == replicaKill || f.kind == replicaFreeze {
		for _, r := range g.data {
			if r != master {
				d = r
				if f.draw%2 == 0 {
					break
				}
			}
		}
	}
	if f.kind == masterFreeze || f.kind == replicaFreeze {
		return d.Addr(), func() error { return errors.Join(d.Thaw(), g.awaitWhole()) }, d.Freeze()
	}
	return d.Addr(), func() error { return errors.Join(d.Restart(), g.awaitWhole()) }, d.Kill()
}

// awaitWhole waits until all servers have their right roles. Only then a fault is over, and another server may be broken.
func (g *replicated) awaitWhole() error {
	for until := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		err := g.whole()
		if err == nil || time.Now().After(until) {
			return err
		}
	}
}

// whole returns nil if one server is the master, the Sentinels know this, and both other servers follow the master.
func (g *replicated) whole() error {
	master, err := g.servers.Daemon().AwaitMaster(nil)
	if err != nil {
		return err
	}
	_, port, _ := net.SplitHostPort(master.Addr()) // it is one
	for _, d := range g.data {
		role, err := roleOf(d)
		if err != nil {
			return err
		}
		want := "slave 127.0.0.1 " + port + " connected"
		if d == master {
			want = "master"
		}
		if !strings.HasPrefix(role, want) {
			return fmt.Errorf("%s is %q, not %q", d.Addr(), role, want)
		}
	}
	return nil
}

// roleOf returns a text with the replication state of a server.
func roleOf(d *testsupport.RedisDaemon) (string, error) {
	c, err := d.Dial()
	if err != nil {
		return "", err
	}
	defer c.Close() // it was only asked
	reply, err := redis.Values(c.Do("ROLE"))
	if err != nil {
		return "", err
	}
	var words []string
	for _, part := range reply {
		if b, ok := part.([]byte); ok {
			words = append(words, string(b))
		} else {
			words = append(words, fmt.Sprint(part))
		}
	}
	return strings.Join(words, " "), nil
}
