package warden

import (
	"errors"
	"syscall"
	"unsafe"
)

// The kernel's own names for what package syscall has no name of. They are the same
// on every architecture.
const (
	clockBoottime     = 7
	sysCloseRange     = 436
	closeRangeCloexec = 4
	setName           = 15
	setChildSubreaper = 36
	waitExited        = 4
	waitNoWait        = 0x01000000
)

// Now reads CLOCK_BOOTTIME.
func Now() Instant {
	var ts syscall.Timespec
	//nolint:gosec // the call's own interface
	_, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockBoottime, uintptr(unsafe.Pointer(&ts)), 0)
	if errno != 0 {
		panic("warden: this kernel has no CLOCK_BOOTTIME: " + errno.Error())
	}
	return Instant(ts.Nano())
}

// rename changes what this process is called in lists of processes. This runs on its first
// thread, as all of init does.
func rename(name string) {
	text := [16]byte{} // the kernel reads no more
	copy(text[:len(text)-1], name)
	//nolint:gosec // the call's own interface
	_, _, _ = syscall.RawSyscall6(syscall.SYS_PRCTL, setName, uintptr(unsafe.Pointer(&text)), 0, 0, 0, 0)
}

// becomeReaper has the orphans of all that we start given to us.
func becomeReaper() error {
	if _, _, errno := syscall.RawSyscall6(syscall.SYS_PRCTL, setChildSubreaper, 1, 0, 0, 0, 0); errno != 0 {
		return errno
	}
	return nil
}

// keepDescriptors keeps all descriptors except the standard streams from the command. On
// an old kernel it keeps only our socket; the caller must see to the rest.
func keepDescriptors() {
	if _, _, errno := syscall.RawSyscall(sysCloseRange, socket, 1<<31-1, closeRangeCloexec); errno != 0 {
		syscall.CloseOnExec(socket)
	}
}

// calledByBaton reports whether baton started this process: a caller by hand has no socket for us.
func calledByBaton() bool {
	kind, err := syscall.GetsockoptInt(socket, syscall.SOL_SOCKET, syscall.SO_TYPE)
	return err == nil && kind == syscall.SOCK_STREAM
}

// childless reports that nothing is left of the command: all that it started is below us.
func childless() bool {
	const all = 0 // P_ALL
	for {
		_, _, errno := syscall.Syscall6(syscall.SYS_WAITID, all, 0, 0, waitExited|waitNoWait|syscall.WNOHANG|syscall.WALL, 0, 0)
		if !errors.Is(errno, syscall.EINTR) {
			return errors.Is(errno, syscall.ECHILD)
		}
	}
}
