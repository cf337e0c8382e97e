package warden

import (
	"syscall"
	"time"
	"unsafe"
)

// waker is a timer of the kernel that continues this process (SIGCONT) if it is stopped at that time, because a stopped process cannot
// continue itself.
type waker struct {
	timer int32
	state int8 // 0 not made yet, 1 made, -1 cannot be made
}

// wakeAgain is the interval of the timer, which continues the process again if the process is stopped again.
const wakeAgain = 20 * time.Millisecond

// sigevent is the argument of timer_create(2). It requests a signal to the process.
type sigevent struct {
	value  uintptr
	signal int32
	notify int32 // 0 is SIGEV_SIGNAL
	_      [48]byte
}

// set sets the time of the timer. On a kernel without such timers the deadline lacks this protection.
func (w *waker) set(when Instant) {
	if w.state == 0 {
		event := sigevent{signal: int32(syscall.SIGCONT)}
		_, _, errno := syscall.Syscall(syscall.SYS_TIMER_CREATE, clockBoottime,
			uintptr(unsafe.Pointer(&event)), uintptr(unsafe.Pointer(&w.timer))) //nolint:gosec // the call's own interface
		w.state = 1
		if errno != 0 {
			w.state = -1
		}
	}
	if w.state < 0 {
		return
	}
	const absolute = 1                                                                                       // TIMER_ABSTIME
	at := [2]syscall.Timespec{syscall.NsecToTimespec(int64(wakeAgain)), syscall.NsecToTimespec(int64(when))} // interval, then first time
	_, _, _ = syscall.Syscall6(syscall.SYS_TIMER_SETTIME, uintptr(w.timer), absolute,
		uintptr(unsafe.Pointer(&at)), 0, 0, 0) //nolint:gosec // the call's own interface
}
