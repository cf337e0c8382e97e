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
	minFrame = 14 // two addresses and the type
	maxFrame = 65536
	// queued limits the packets that are in transit from one machine to another. It is enough for a busy link with a delay of one second.
	// Further packets are lost, as in any switch.
	queued = 8192
)

var arp = []byte{0x08, 0x06}

// mac is a hardware address.
type mac [macBytes]byte

// port is the switch's end of one machine's cable.
type port struct {
	name    string
	tap     *os.File
	network *Network

	mu      sync.Mutex
	arrives map[string]chan packet // by sender, because packets of one sender stay in order
	closed  bool
	running sync.WaitGroup
}

type packet struct {
	at    time.Time
	frame []byte
}

// attach starts to forward the machine's packets.
func (n *Network) attach(name string, tap *os.File) {
	p := &port{name: name, tap: tap, network: n, arrives: map[string]chan packet{}}
	n.mu.Lock()
	n.ports[name] = p
	n.mu.Unlock()
	p.running.Go(p.read)
}

// detach stops forwarding the machine's packets.
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
	_ = p.tap.Close() // makes the reader return
	p.running.Wait()
}

// read reads the machine's packets until the port is closed.
func (p *port) read() {
	buffer := make([]byte, maxFrame)
	var peers []*port
	for {
		n, err := p.tap.Read(buffer)
		if err != nil {
			if p.isClosed() {
				return
			}
			time.Sleep(time.Millisecond) // no carrier: an unplugged cable returns an error
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

// receivers returns the ports to which a frame is sent: the port where the receiver's address was last seen, otherwise all other ports.
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

// enqueue passes a packet to the goroutine for its sender. The first packet of a sender starts that goroutine.
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
	default: // the packet is lost
	}
}

func (p *port) deliver(c <-chan packet) {
	for what := range c {
		if wait := time.Until(what.at); wait > 0 {
			time.Sleep(wait)
		}
		_, _ = p.tap.Write(what.frame) // fails if the machine has ended or its cable is unplugged
	}
}

// carrier tells the machine whether its cable is plugged in.
func (p *port) carrier(in bool) {
	value := 0
	if in {
		value = 1
	}
	raw, err := p.tap.SyscallConn()
	if err != nil {
		return // the device is closed
	}
	_ = raw.Control(func(fd uintptr) { _ = unix.IoctlSetPointerInt(int(fd), unix.TUNSETCARRIER, value) })
}
