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

// Tests is the name of the machine in the network that stands for the tests themselves.
const Tests = "tests"

const (
	subnet    = "10.77.0."
	prefixLen = 24
	testsAddr = 1
	firstAddr = 11
	within    = 30 * time.Second // a long time, because two cores may run all tests at once
)

// Lab contains the hosts, servers and network of one test. Its methods fail the test on unexpected errors, so call them from the test's
// goroutine.
type Lab struct {
	Net *Network

	t        testing.TB
	dir      string
	machines map[string]*machine
	hosts    []*Host
}

// machine is the network side of a host or of a server.
type machine struct {
	name  string
	addr  netip.Addr
	netns *netns // nil for the tests' own machine
}

// New makes an empty lab. At the test's end the lab and its contents are removed. If the test has failed, the journals of the hosts are
// shown.
func New(t testing.TB) *Lab {
	t.Helper()
	if ground == nil {
		t.Fatal("the package's TestMain does not call hosts.Main")
	}
	// It is not t.TempDir(), because that directory is removed before the disks are switched off.
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

// end removes the lab. The clean-ups of hosts and servers have run before end is called.
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

// machine makes a machine in the network.
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

// Addr returns the address of a machine in the network.
func (l *Lab) Addr(name string) string {
	l.t.Helper()
	m := l.machines[name]
	if m == nil {
		l.t.Fatalf("the lab has no machine %q", name)
	}
	return m.addr.String()
}

// Dial connects from a machine to an address. The address may be on the machine's loopback.
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

// path returns the path of a file of the lab.
func (l *Lab) path(name ...string) string { return filepath.Join(append([]string{l.dir}, name...)...) }

// await calls the function ok until ok returns true.
func await(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(within); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			ranout.Fatal(t, what, fmt.Sprintf("waited %v in vain for %s", within, what))
		}
	}
}

// Await waits until ok returns true.
func (l *Lab) Await(what string, ok func() bool) { l.t.Helper(); await(l.t, what, ok) }
