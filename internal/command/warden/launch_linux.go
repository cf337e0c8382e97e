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

// A launcher is the process between warden and command if the command has its own settings. It applies the settings, and then becomes the
// command. Until then, ps shows LauncherName.
const (
	LauncherName   = "launcher"
	LaunchArgument = "launch"
)

// launchWithin is the maximum time that a launcher may take. A stopped launcher must not delay the warden.
const launchWithin = 5 * time.Second

// launch does the whole work of a launcher. It returns if the launcher does not become the command.
func launch() int {
	runtime.LockOSThread() // settings belong to a thread, and the program inherits the settings of the thread that begins it
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
		return 0 // this was only a trial
	}
	errno := execute(p.path, p.argv, p.env)
	if errno == syscall.ENOEXEC && isText(o.Setup.Path) { // a script that does not name its shell
		errno = execute(p.shell, p.shellArgv, p.env)
	}
	return p.failed(StepBegin, errno)
}

// program holds all arguments of execve(2). They are allocated in advance, because a limit of memory may be in force when execve is called.
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

func (program) say(text string) { _, _ = syscall.Write(socket, []byte(text)) } // a closed socket needs no report

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

// These are constants of the kernel that package syscall lacks.
const (
	limitAddressSpace = 9 // RLIMIT_AS
	setDeathSignal    = 1 // PR_SET_PDEATHSIG
	capAmbient        = 47
	ambientIsSet      = 1
	ambientLower      = 3
	ambientClearAll   = 4
	ofProcess         = 0 // PRIO_PROCESS
)

// lent returns the capabilities that the daemon needs to start commands with another user, and to end these commands: CAP_KILL,
// CAP_SETGID and CAP_SETUID. No command inherits these capabilities.
func lent() [3]uintptr { return [3]uintptr{5, 6, 7} }

// lends reports whether a command would inherit one of these capabilities.
func lends() bool {
	for _, c := range lent() {
		if set, _, errno := syscall.RawSyscall6(syscall.SYS_PRCTL, capAmbient, ambientIsSet, c, 0, 0, 0); errno == 0 && set == 1 {
			return true
		}
	}
	return false
}

// settle applies the settings of this process, and the settings that the next program inherits.
func (p program) settle(s Settings, parent int) (Step, syscall.Errno) {
	if s.Nice != nil {
		if _, _, errno := syscall.RawSyscall(syscall.SYS_SETPRIORITY, ofProcess, 0, uintptr(*s.Nice)); errno != 0 {
			return StepNice, errno
		}
	}
	if s.Umask != nil {
		syscall.Umask(*s.Umask)
	}
	if errno := s.setLimits(syscall.Setrlimit); errno != 0 {
		return StepLimits, errno
	}
	if s.User == nil {
		for _, c := range lent() { // a command with the daemon's own user must not inherit these capabilities
			_, _, _ = syscall.RawSyscall6(syscall.SYS_PRCTL, capAmbient, ambientLower, c, 0, 0, 0)
		}
		return 0, 0
	}
	return StepUser, p.become(*s.User, parent)
}

// setLimits applies the limits of the command. The argument set is setrlimit(2).
func (s Settings) setLimits(set func(resource int, limit *syscall.Rlimit) error) syscall.Errno {
	for _, last := range []bool{false, true} { // settings that this process itself still needs change last
		for _, l := range s.limits() {
			if (l.Resource == limitAddressSpace) != last {
				continue
			}
			err := set(l.Resource, &syscall.Rlimit{Cur: l.Max, Max: l.Max})
			if err != nil && l.Resource != realTimePriority { // a sandbox may refuse every change of this limit
				return errnoOf(err)
			}
		}
	}
	return 0
}

// become switches to the rights of another user, and keeps no other rights.
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
	// The kernel has reset the signal for the warden's death, so it must be set again.
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, setDeathSignal, uintptr(syscall.SIGKILL), 0); errno != 0 {
		return errno
	}
	if syscall.Getppid() != parent { // the parent has died in between
		return syscall.ESRCH
	}
	return 0
}

// launched starts the command with a launcher, and returns when the launcher has become the command.
func (w *warden) launched(attr *syscall.ProcAttr) (pid int, step Step, err error) {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = syscall.Close(fds[0]) }()
	attr.Files = append(attr.Files, uintptr(fds[1]))
	pid, err = syscall.ForkExec("/proc/self/exe", []string{LauncherName, LaunchArgument}, attr)
	_ = syscall.Close(fds[1]) // the launcher has its own copy
	if err != nil {
		return 0, 0, err
	}
	setup := w.setup
	setup.Env = nil // the launcher already has the environment
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

// outcome reads the reports of a launcher until the launcher's socket closes. The socket closes when the launcher has ended or has become
// the command.
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
	_ = syscall.Kill(pid, syscall.SIGKILL) // the launcher may have ended
	for {
		if _, err := syscall.Wait4(pid, nil, syscall.WALL, nil); !errors.Is(err, syscall.EINTR) {
			return
		}
	}
}
