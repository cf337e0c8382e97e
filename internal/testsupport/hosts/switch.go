package hosts

import (
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	macBytes = 6
	minFrame = 14 // addresses and the type
	maxFrame = 65536
	// queued is how many packets may be on their way between two machines: what a
	// delay of a second holds of a busy link. More are lost, as in any switch.
	queued = 8192
)

var arp = []byte{0x08, 0x06}

// mac is a hardware address.
type mac [macBytes]byte

// port is one machine's end of its cable, in the switch.
type port struct {
	name    string
	tap     *os.File
	network *Network

	mu      sync.Mutex
	arrives map[string]chan packet // by sender: each way keeps its order
	closed  bool
	running sync.WaitGroup
}

type packet struct {
	at    time.Time
	frame []byte
}

// attach starts to carry what the machine sends.
func (n *Network) attach(name string, tap *os.File) {
	p := &port{name: name, tap: tap, network: n, arrives: map[string]chan packet{}}
	n.mu.Lock()
	n.ports[name] = p
	n.mu.Unlock()
	p.running.Go(p.read)
}

// detach ends that.
func (n *Network) detach(name string) {
	n.mu.Lock()
	p := n.ports[name]
	delete(n.ports, name)
	maps.DeleteFunc(n.learnt, func(_ mac, at *port) bool { return at == p })
	n.mu.Unlock()
	p.mu.Lock()
	p.closed = true
	for _, c := range p.arrives {
		close(c)
	}
	p.mu.Unlock()
	_ = p.tap.Close() // the reader returns
	p.running.Wait()
}

// read takes what the machine sends, until the port is closed.
func (p *port) read() {
	buffer := make([]byte, maxFrame)
	var peers []*port
	for {
		n, err := p.tap.Read(buffer)
		if err != nil {
			if p.isClosed() {
				return
			}
			time.Sleep(time.Millisecond) // no carrier: a cable that is out reads as an error
			continue
		}
		if n < minFrame {
			continue
		}
		frame := slices.Clone(buffer[:n])
		peers = p.network.receivers(peers[:0], p, frame)
		now := time.Now()
		resolution := slices.Equal(frame[2*macBytes:minFrame], arp)
		for _, peer := range peers {
			if at, passes := p.network.fate(p.name, peer.name, resolution, now); passes {
				peer.enqueue(p.name, packet{at: at, frame: frame})
			}
		}
	}
}

func (p *port) isClosed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closed
}

// receivers are the ports that a frame goes to: the one where its address was last
// seen, or all the others.
func (n *Network) receivers(list []*port, from *port, frame []byte) []*port {
	to, sender := mac(frame[:macBytes]), mac(frame[macBytes:2*macBytes])
	n.mu.Lock()
	defer n.mu.Unlock()
	n.learnt[sender] = from
	if known := n.learnt[to]; known != nil {
		return append(list, known)
	}
	for _, p := range n.ports {
		if p != from {
			list = append(list, p)
		}
	}
	return list
}

// enqueue hands a packet to the goroutine of its way, and starts it with the first.
func (p *port) enqueue(from string, what packet) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	c := p.arrives[from]
	if c == nil {
		c = make(chan packet, queued)
		p.arrives[from] = c
		p.running.Go(func() { p.deliver(c) })
	}
	select {
	case c <- what:
	default: // lost
	}
}

func (p *port) deliver(c <-chan packet) {
	for what := range c {
		if wait := time.Until(what.at); wait > 0 {
			time.Sleep(wait)
		}
		_, _ = p.tap.Write(what.frame) // a machine that is gone, or whose cable is out, takes nothing
	}
}

// carrier tells the machine whether its cable is in.
func (p *port) carrier(in bool) {
	value := 0
	if in {
		value = 1
	}
	raw, err := p.tap.SyscallConn()
	if err != nil {
		return // closed
	}
	_ = raw.Control(func(fd uintptr) { _ = unix.IoctlSetPointerInt(int(fd), unix.TUNSETCARRIER, value) })
}
