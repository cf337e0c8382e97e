package hosts

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"baton/internal/testsupport/ranout"
)

// Tests is the name of the tests' own machine in the network.
const Tests = "tests"

const (
	subnet    = "10.77.0."
	prefixLen = 24
	testsAddr = 1
	firstAddr = 11
	within    = 30 * time.Second // generous: two cores may run everything at once
)

// Lab is the hosts, servers and network of one test. Its methods fail the test on
// what should not go wrong: call them from the test's goroutine.
type Lab struct {
	Net *Network

	t        testing.TB
	dir      string
	machines map[string]*machine
	hosts    []*Host
}

// machine is a place in the network: a host's, or a server's.
type machine struct {
	name  string
	addr  netip.Addr
	netns *netns // nil: the tests' own
}

// New makes an empty lab. All that will be in it goes at the test's end; the journals
// of its hosts are shown if the test has failed.
func New(t testing.TB) *Lab {
	t.Helper()
	if ground == nil {
		t.Fatal("the package's TestMain does not call hosts.Main")
	}
	// Not t.TempDir(), which is removed before disks are switched off.
	dir, err := os.MkdirTemp(ground.Dir, "lab-") //nolint:usetesting // see above
	if err != nil {
		t.Fatal(err)
	}
	l := &Lab{Net: newNetwork(), t: t, dir: dir, machines: map[string]*machine{}}
	addr := netip.MustParseAddr(subnet + fmt.Sprint(testsAddr))
	tap, err := newTap(netip.PrefixFrom(addr, prefixLen))
	if err != nil {
		t.Fatal(err)
	}
	l.machines[Tests] = &machine{name: Tests, addr: addr}
	l.Net.attach(Tests, tap)
	t.Cleanup(l.end)
	return l
}

// end takes everything away. Hosts and servers have their own clean-ups, which ran before.
func (l *Lab) end() {
	for name, m := range l.machines {
		l.Net.detach(name)
		if m.netns != nil {
			_ = m.netns.file.Close()
		}
	}
	if err := os.RemoveAll(l.dir); err != nil {
		l.t.Errorf("remove the disks of this lab: %v", err)
	}
}

// machine makes a place in the network.
func (l *Lab) machine(name string) *machine {
	l.t.Helper()
	if l.machines[name] != nil || name == Any {
		l.t.Fatalf("the lab has a machine %q already", name)
	}
	addr := netip.MustParseAddr(subnet + fmt.Sprint(firstAddr+len(l.machines)-1))
	ns, tap, err := newNetns(netip.PrefixFrom(addr, prefixLen))
	if err != nil {
		l.t.Fatalf("make machine %s: %v", name, err)
	}
	m := &machine{name: name, addr: addr, netns: ns}
	l.machines[name] = m
	l.Net.attach(name, tap)
	return m
}

// Addr is the address of a machine in the network.
func (l *Lab) Addr(name string) string {
	l.t.Helper()
	m := l.machines[name]
	if m == nil {
		l.t.Fatalf("the lab has no machine %q", name)
	}
	return m.addr.String()
}

// Dial connects to an address as seen from a machine, its loopback included.
func (l *Lab) Dial(from, addr string) (c net.Conn, err error) {
	m := l.machines[from]
	if m == nil {
		return nil, fmt.Errorf("the lab has no machine %q", from)
	}
	dial := func() error {
		c, err = net.DialTimeout("tcp4", addr, within)
		return err
	}
	if m.netns == nil {
		return c, dial()
	}
	return c, m.netns.within(dial)
}

// path is a file of the lab.
func (l *Lab) path(name ...string) string { return filepath.Join(append([]string{l.dir}, name...)...) }

// await asks until ok is true.
func await(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(within); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			ranout.Fatal(t, what, fmt.Sprintf("waited %v in vain for %s", within, what))
		}
	}
}

// Await waits until what is asked for has come true.
func (l *Lab) Await(what string, ok func() bool) { l.t.Helper(); await(l.t, what, ok) }
