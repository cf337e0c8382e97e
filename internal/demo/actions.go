package demo

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

const (
	// freezeFor is longer than a lease, so that a frozen leader is deposed when it continues.
	freezeFor = ttl + ttl/2
	// cutFor is how long the key r separates the nodes from Redis.
	cutFor = ttl + ttl/2
)

// actions carries out the actions that the user starts by keys: faults of nodes, and orders to nodes, while the nodes work.
type actions struct {
	program string
	environ []string
	server  *server
	fleet   *fleet
	watcher *watcher
	events  *eventLog
	wg      sync.WaitGroup // counts actions that take time; they are undone when their context ends
}

// run handles the keys that the user presses until ctx ends. For the key q it calls the function end and returns. It does not wait for a
// read from the argument keys, because such a read may never return.
func (a *actions) run(ctx context.Context, keys io.Reader, end func()) {
	pressed := make(chan byte)
	go func() {
		defer close(pressed)
		for buf := make([]byte, 1); ; {
			if n, err := keys.Read(buf); err != nil {
				return
			} else if n == 0 {
				continue
			}
			select {
			case pressed <- buf[0]:
			case <-ctx.Done():
				return
			}
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return
		case key, ok := <-pressed:
			if !ok {
				return
			}
			if key == 'q' || key == 'Q' {
				end()
				return
			}
			a.press(ctx, key)
		}
	}
}

func (a *actions) press(ctx context.Context, key byte) {
	switch key {
	case 'k', 'K':
		if n := a.leader(); n != nil {
			a.kill(n)
		}
	case 'f', 'F':
		if n := a.leader(); n != nil {
			a.freeze(ctx, n, freezeFor)
		}
	case 's', 'S':
		a.wg.Go(func() { a.stepDown(ctx) })
	case 'r', 'R':
		a.wg.Go(func() { a.cutRedis(ctx) })
	}
}

// leader returns the node that leads, if this node works. Otherwise it returns nil and says so in the event log.
func (a *actions) leader() *node {
	if n := a.fleet.find(a.watcher.leader()); n != nil && n.working() {
		return n
	}
	a.events.note("no node leads just now: press the key again")
	return nil
}

// kill kills a node, and reports whether there was a process to kill.
func (a *actions) kill(n *node) bool {
	at := time.Now()
	if n.signal(syscall.SIGKILL) == 0 {
		return false
	}
	a.watcher.down(n.id, at, syscall.SIGKILL)
	return true
}

// freeze stops a node for the duration d, and reports whether there was a process to stop.
func (a *actions) freeze(ctx context.Context, n *node, d time.Duration) bool {
	at := time.Now()
	if n.signal(syscall.SIGSTOP) == 0 {
		return false
	}
	a.watcher.down(n.id, at, syscall.SIGSTOP)
	a.wg.Go(func() {
		pause(ctx, d)
		n.signal(syscall.SIGCONT)
	})
	return true
}

// stepDown orders the leader to step down, as an operator does.
func (a *actions) stepDown(ctx context.Context) {
	limited, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(limited, a.program, "stepdown", "--config", a.fleet.nodes[0].configFile(), "--reason", "key s of the demo")
	cmd.Env = a.environ
	if out, err := cmd.CombinedOutput(); err != nil && ctx.Err() == nil {
		a.events.note("stepdown: %v: %s", err, lastLine(string(out)))
	}
}

// cutRedis cuts the nodes off from Redis for a while.
func (a *actions) cutRedis(ctx context.Context) {
	if a.server.relay == nil {
		a.events.note("the demo cannot cut the connection to a Redis with TLS")
		return
	}
	if a.server.relay.isCut() {
		return
	}
	a.server.relay.setCut(true)
	a.events.note("the nodes are cut off from Redis for %v; the application is not", cutFor)
	pause(ctx, cutFor)
	a.server.relay.setCut(false)
	a.events.note("the nodes reach Redis again")
}

// observer forwards the events of the nodes to the watcher. When a node is killed or frozen, the observer does the same to the leader of
// the naive program.
type observer struct {
	*watcher
	naive *naiveFleet // nil if no naive program runs
}

func (o observer) down(id string, at time.Time, how syscall.Signal) {
	if o.naive != nil && how != 0 && o.leads(id) {
		o.naive.fault(context.Background(), how)
	}
	o.watcher.down(id, at, how)
}

func (o observer) up(id string) {
	if o.naive != nil {
		o.naive.thaw()
	}
	o.watcher.up(id)
}

// keysHelp returns the line that explains which keys the user can press.
func keysHelp() string {
	return fmt.Sprintf("k kill the leader   f freeze it %v   s step down   r cut Redis %v   q end", freezeFor, cutFor)
}
