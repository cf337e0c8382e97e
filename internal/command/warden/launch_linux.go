package warden

import (
	"errors"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"time"
	"unsafe"
)

// A launcher is the process between warden and command where the command has settings of its own:
// it makes them, and becomes the command. The name is what ps shows until then.
const (
	LauncherName   = "launcher"
	LaunchArgument = "launch"
)

// launchWithin is how long it may take. One that is stopped must not keep the warden.
const launchWithin = 5 * time.Second

// launch is the whole work of a launcher. It returns if it does not become the command.
func launch() int {
	runtime.LockOSThread() // settings are a thread's, and the one that begins the program passes them on
	rename(LauncherName)
	parent := syscall.Getppid()
	keepDescriptors()
	o, ok := <-receive(os.NewFile(socket, "warden"), parseOrder)
	if !ok || o.Setup == nil {
		return 1
	}
	p, err := prepare(*o.Setup)
	if err != nil {
		return p.failed(StepBegin, errnoOf(err))
	}
	if step, errno := p.settle(o.Setup.Settings, parent); errno != 0 {
		return p.failed(step, errno)
	}
	p.say(settled)
	if o.Setup.Path == "" {
		return 0 // it was to be tried
	}
	errno := execute(p.path, p.argv, p.env)
	if errno == syscall.ENOEXEC && isText(o.Setup.Path) { // a script that does not name its shell
		errno = execute(p.shell, p.shellArgv, p.env)
	}
	return p.failed(StepBegin, errno)
}

// program has all that execve(2) wants: a limit of memory may be in force by then.
type program struct {
	path, shell          *byte
	argv, env, shellArgv []*byte
	groups               []uint32
}

func prepare(s Setup) (p program, err error) {
	var errs [5]error
	p.path, errs[0] = syscall.BytePtrFromString(s.Path)
	p.shell, errs[1] = syscall.BytePtrFromString("/bin/sh")
	p.argv, errs[2] = syscall.SlicePtrFromStrings(s.Argv)
	p.env, errs[3] = syscall.SlicePtrFromStrings(syscall.Environ())
	p.shellArgv, errs[4] = syscall.SlicePtrFromStrings(append([]string{"sh", s.Path}, s.Argv[1:]...))
	if u := s.Settings.User; u != nil {
		for _, g := range u.Groups {
			p.groups = append(p.groups, uint32(g))
		}
	}
	return p, errors.Join(errs[:]...)
}

func (program) say(text string) { _, _ = syscall.Write(socket, []byte(text)) } // a peer that is gone need not know

func (p program) failed(step Step, errno syscall.Errno) int {
	p.say(strconv.Itoa(int(step)) + " " + strconv.Itoa(int(errno)))
	return 1
}

// execute returns only if the program could not be begun.
func execute(path *byte, argv, env []*byte) syscall.Errno {
	for {
		//nolint:gosec // the call's own interface
		_, _, errno := syscall.RawSyscall(syscall.SYS_EXECVE, uintptr(unsafe.Pointer(path)),
			uintptr(unsafe.Pointer(&argv[0])), uintptr(unsafe.Pointer(&env[0])))
		if errno != syscall.EINTR {
			return errno
		}
	}
}

// Constants of the kernel that package syscall lacks.
const (
	limitAddressSpace = 9 // RLIMIT_AS
	setDeathSignal    = 1 // PR_SET_PDEATHSIG
	capAmbient        = 47
	ambientIsSet      = 1
	ambientLower      = 3
	ambientClearAll   = 4
	ofProcess         = 0 // PRIO_PROCESS
)

// lent are the capabilities that the daemon has so that commands may have a user of their own, and
// so that it can end these: CAP_KILL, CAP_SETGID and CAP_SETUID. No command inherits them.
func lent() [3]uintptr { return [3]uintptr{5, 6, 7} }

// lends reports whether a command would inherit one of them.
func lends() bool {
	for _, c := range lent() {
		if set, _, errno := syscall.RawSyscall6(syscall.SYS_PRCTL, capAmbient, ambientIsSet, c, 0, 0, 0); errno == 0 && set == 1 {
			return true
		}
	}
	return false
}

// settle makes the settings of this process, and those that the next program inherits.
func (p program) settle(s Settings, parent int) (Step, syscall.Errno) {
	if s.Nice != nil {
		if _, _, errno := syscall.RawSyscall(syscall.SYS_SETPRIORITY, ofProcess, 0, uintptr(*s.Nice)); errno != 0 {
			return StepNice, errno
		}
	}
	if s.Umask != nil {
		syscall.Umask(*s.Umask)
	}
	for _, last := range []bool{false, true} { // what this process needs itself goes last
		for _, l := range s.Limits {
			if (l.Resource == limitAddressSpace) != last {
				continue
			}
			limit := syscall.Rlimit{Cur: l.Max, Max: l.Max}
			if err := syscall.Setrlimit(l.Resource, &limit); err != nil {
				return StepLimits, errnoOf(err)
			}
		}
	}
	if s.User == nil {
		for _, c := range lent() { // capabilities that the daemon lent to its commands are not ours to take
			_, _, _ = syscall.RawSyscall6(syscall.SYS_PRCTL, capAmbient, ambientLower, c, 0, 0, 0)
		}
		return 0, 0
	}
	return StepUser, p.become(*s.User, parent)
}

// become takes another user's rights, and none but these.
func (p program) become(u User, parent int) syscall.Errno {
	if u.UID >= 0 {
		_, _, errno := syscall.RawSyscall(syscall.SYS_SETGROUPS, uintptr(len(p.groups)),
			uintptr(unsafe.Pointer(unsafe.SliceData(p.groups))), 0) //nolint:gosec // the call's own interface
		if errno != 0 {
			return errno
		}
	}
	if g := uintptr(u.GID); u.GID >= 0 {
		if _, _, errno := syscall.RawSyscall(syscall.SYS_SETRESGID, g, g, g); errno != 0 {
			return errno
		}
	}
	if id := uintptr(u.UID); u.UID >= 0 {
		if _, _, errno := syscall.RawSyscall(syscall.SYS_SETRESUID, id, id, id); errno != 0 {
			return errno
		}
	}
	_, _, _ = syscall.RawSyscall6(syscall.SYS_PRCTL, capAmbient, ambientClearAll, 0, 0, 0, 0)
	// The kernel has forgotten that we die with the warden.
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, setDeathSignal, uintptr(syscall.SIGKILL), 0); errno != 0 {
		return errno
	}
	if syscall.Getppid() != parent { // it has died in between
		return syscall.ESRCH
	}
	return 0
}

// launched starts the command by a launcher, and returns when it has become the command.
func (w *warden) launched(attr *syscall.ProcAttr) (pid int, step Step, err error) {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = syscall.Close(fds[0]) }()
	attr.Files = append(attr.Files, uintptr(fds[1]))
	pid, err = syscall.ForkExec("/proc/self/exe", []string{LauncherName, LaunchArgument}, attr)
	_ = syscall.Close(fds[1]) // it has its own
	if err != nil {
		return 0, 0, err
	}
	setup := w.setup
	setup.Env = nil // it has it already
	var order line
	writing := Order{Setup: &setup}.Write(&order)
	within := launchWithin
	if kill := w.kill(); kill != 0 {
		within = max(min(within, kill.Sub(Now())), time.Millisecond)
	}
	wait := syscall.NsecToTimeval(int64(within))
	bound := errors.Join(syscall.SetsockoptTimeval(fds[0], syscall.SOL_SOCKET, syscall.SO_RCVTIMEO, &wait),
		syscall.SetsockoptTimeval(fds[0], syscall.SOL_SOCKET, syscall.SO_SNDTIMEO, &wait))
	if err = errors.Join(writing, bound, writeAll(fds[0], order)); err == nil {
		step, err = outcome(fds[0])
	}
	if err != nil {
		endLauncher(pid)
		return 0, step, err
	}
	return pid, 0, nil
}

// Write implements io.Writer.
func (l *line) Write(b []byte) (int, error) {
	*l = append(*l, b...)
	return len(b), nil
}

func writeAll(fd int, text []byte) error {
	for len(text) > 0 {
		n, err := syscall.Write(fd, text)
		if err != nil && !errors.Is(err, syscall.EINTR) {
			return err
		}
		text = text[max(n, 0):]
	}
	return nil
}

// outcome reads the reports of a launcher until it has ended, or is the command: its socket closes then.
func outcome(fd int) (Step, error) {
	var said []byte
	for buffer := make([]byte, 64); ; {
		n, err := syscall.Read(fd, buffer)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case err != nil:
			return 0, TooLate
		case n > 0:
			said = append(said, buffer[:n]...)
			continue
		}
		return ReadOutcome(string(said))
	}
}

func endLauncher(pid int) {
	_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
	for {
		if _, err := syscall.Wait4(pid, nil, syscall.WALL, nil); !errors.Is(err, syscall.EINTR) {
			return
		}
	}
}
