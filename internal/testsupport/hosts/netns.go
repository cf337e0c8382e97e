package hosts

import (
	"fmt"
	"net/netip"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// machineLink is the name of the network device in every machine.
const machineLink = "eth0"

// netns is a network namespace. It exists until it is closed, also if no process is in it.
type netns struct{ file *os.File }

// newNetns makes a namespace with one network cable. The result tap is the other end of the cable, which the switch uses.
func newNetns(addr netip.Prefix) (ns *netns, tap *os.File, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked, because the thread must end with the goroutine
		if err = unix.Unshare(unix.CLONE_NEWNET); err != nil {
			err = fmt.Errorf("make a network namespace: %w", err)
			return
		}
		var file *os.File
		if file, err = os.Open("/proc/thread-self/ns/net"); err != nil {
			return
		}
		ns = &netns{file: file}
		if err = linkUp("lo"); err == nil {
			tap, err = newTap(addr)
		}
	}()
	<-done
	if err != nil && ns != nil {
		_ = ns.file.Close()
	}
	return ns, tap, err
}

// within calls f on a thread in the namespace. Processes that f starts are in the namespace too; goroutines that f starts are not.
func (n *netns) within(f func() error) error {
	ended := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked, because the thread must end with the goroutine
		if err := unix.Setns(int(n.file.Fd()), unix.CLONE_NEWNET); err != nil {
			ended <- fmt.Errorf("enter a network namespace: %w", err)
			return
		}
		ended <- f()
	}()
	return <-ended
}

// newTap makes the network cable of the namespace in which the present thread runs.
func newTap(addr netip.Prefix) (*os.File, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("open /dev/net/tun, from which cables are made: %w", err)
	}
	req, err := unix.NewIfreq(machineLink)
	if err == nil {
		req.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, req)
	}
	if err == nil {
		err = setAddr(machineLink, addr)
	}
	if err == nil {
		err = linkUp(machineLink)
	}
	if err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("make a cable: %w", err)
	}
	return os.NewFile(uintptr(fd), "tap"), nil
}

func setAddr(link string, addr netip.Prefix) error {
	mask := uint32(0xffffffff) << (32 - addr.Bits())
	return configure(func(fd int) error {
		for _, set := range []struct {
			request uint
			value   [4]byte
		}{
			{unix.SIOCSIFADDR, addr.Addr().As4()},
			{unix.SIOCSIFNETMASK, [4]byte{byte(mask >> 24), byte(mask >> 16), byte(mask >> 8), byte(mask)}},
		} {
			req, err := unix.NewIfreq(link)
			if err != nil {
				return err
			}
			if err := req.SetInet4Addr(set.value[:]); err != nil {
				return err
			}
			if err := unix.IoctlIfreq(fd, set.request, req); err != nil {
				return fmt.Errorf("give %s its address: %w", link, err)
			}
		}
		return nil
	})
}

func linkUp(link string) error {
	return configure(func(fd int) error {
		req, err := unix.NewIfreq(link)
		if err != nil {
			return err
		}
		if err := unix.IoctlIfreq(fd, unix.SIOCGIFFLAGS, req); err != nil {
			return err
		}
		req.SetUint16(req.Uint16() | unix.IFF_UP)
		if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, req); err != nil {
			return fmt.Errorf("turn %s on: %w", link, err)
		}
		return nil
	})
}

func configure(f func(fd int) error) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return f(fd)
}
