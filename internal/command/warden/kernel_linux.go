package warden

import (
	"errors"
	"syscall"
	"unsafe"
)

// These are the kernel's names for constants that package syscall lacks. Their values are the same on every architecture.
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

// rename changes the name of this process in lists of processes. The kernel uses the name of the process's first thread, and init runs on
// this thread.
func rename(name string) {
	text := [16]byte{} // the kernel does not read more
	copy(text[:len(text)-1], name)
	//nolint:gosec // the call's own interface
	_, _, _ = syscall.RawSyscall6(syscall.SYS_PRCTL, setName, uintptr(unsafe.Pointer(&text)), 0, 0, 0, 0)
}

// becomeReaper makes this process adopt the orphans among its descendants.
func becomeReaper() error {
	if _, _, errno := syscall.RawSyscall6(syscall.SYS_PRCTL, setChildSubreaper, 1, 0, 0, 0, 0); errno != 0 {
		return errno
	}
	return nil
}

// keepDescriptors makes sure that the command inherits no descriptor except the standard streams. On an old kernel it does this only
// for our socket, and the caller must make sure that the other descriptors are not inherited.
func keepDescriptors() {
	if _, _, errno := syscall.RawSyscall(sysCloseRange, socket, 1<<31-1, closeRangeCloexec); errno != 0 {
		syscall.CloseOnExec(socket)
	}
}

// calledByBaton reports whether baton started this process. A user who starts the process by hand passes no socket.
func calledByBaton() bool {
	kind, err := syscall.GetsockoptInt(socket, syscall.SOL_SOCKET, syscall.SO_TYPE)
	return err == nil && kind == syscall.SOCK_STREAM
}

// childless reports whether no process of the command is left, because all of the command's processes are descendants of this process.
func childless() bool {
	const all = 0 // P_ALL
	for {
		_, _, errno := syscall.Syscall6(syscall.SYS_WAITID, all, 0, 0, waitExited|waitNoWait|syscall.WNOHANG|syscall.WALL, 0, 0)
		if !errors.Is(errno, syscall.EINTR) {
			return errors.Is(errno, syscall.ECHILD)
		}
	}
}
