package command

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// deadMan is a timer of the kernel that kills this process unless it is set anew:
// also when the process is stopped (SIGSTOP), so that it could not end itself.
type deadMan struct {
	timer int32
	state int8 // 0 not made yet, 1 made, -1 cannot be
}

// sigevent is what timer_create(2) wants to know: a signal to the process.
type sigevent struct {
	value  uintptr
	signal int32
	notify int32 // 0 is SIGEV_SIGNAL
	_      [48]byte
}

// set fixes when. A kernel without such timers has one guard less.
func (d *deadMan) set(when instant) {
	if d.state == 0 {
		event := sigevent{signal: int32(unix.SIGKILL)}
		_, _, errno := unix.Syscall(unix.SYS_TIMER_CREATE, unix.CLOCK_BOOTTIME,
			uintptr(unsafe.Pointer(&event)), uintptr(unsafe.Pointer(&d.timer))) //nolint:gosec // the call's own interface
		d.state = 1
		if errno != 0 {
			d.state = -1
		}
	}
	if d.state < 0 {
		return
	}
	d.arm(when)
}

// disarm lets the process live on.
func (d *deadMan) disarm() {
	if d.state > 0 {
		d.arm(0)
	}
}

// arm sets the timer; zero stops it.
func (d *deadMan) arm(when instant) {
	const absolute = 1 // TIMER_ABSTIME
	at := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(when))}
	_, _, _ = unix.Syscall6(unix.SYS_TIMER_SETTIME, uintptr(d.timer), absolute,
		uintptr(unsafe.Pointer(&at)), 0, 0, 0) //nolint:gosec // the call's own interface
}
