package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"baton/internal/command/warden"
)

// These are the reasons why a command was not run.
var (
	ErrNotFound = errors.New("command not found")
	ErrNoExec   = errors.New("command cannot be run")
)

// These are the exit codes for a command that was not run. A shell and env(1) use the same codes.
const (
	CodeNoExec   = 126
	CodeNotFound = 127
)

// Spec is a command and the way to run it.
type Spec struct {
	Path string   // the program's file, from [Find]
	Argv []string // with the program's name
	Env  []string // each name once; nil means the environment of this process
	Dir  string   // "" is the current one

	// These are the standard streams. A file is passed to the command unchanged. The command gets no other descriptors.
	Stdin          io.Reader
	Stdout, Stderr io.Writer

	// Warden is the command line, up to "warden", of a program that links this package. The program becomes the command's warden, see
	// package warden.
	Warden []string
	// StopSignal is the signal that asks the command to end; 0 means SIGTERM.
	StopSignal syscall.Signal
	// Settings are the settings of the command that differ from the settings of this process.
	Settings Settings
	// Grace is the time between StopSignal and SIGKILL.
	Grace time.Duration
	// Until, if set, returns how much longer the command may live. Run calls it repeatedly. SIGKILL is sent a little earlier, so that all
	// processes are dead by then.
	Until func() time.Duration
	// Drain, if set, is the part of Until that is reserved for ending the command, and may be less than Grace. Unless Until grows again,
	// SIGTERM is sent when about this time is left.
	Drain time.Duration
	// Signals are passed on to the command.
	Signals <-chan os.Signal
	// Terminal lets the command share the process group of this process, if this process group has a terminal, so that the terminal's keys
	// reach the command directly.
	Terminal bool
	// Begun, if set, is called when the command has begun.
	Begun func()
	// Leave means that background processes of the command continue after the command has ended without a signal from Run.
	Leave bool
}

type (
	// Settings are the umask, priority, limits and user of a command. Package warden applies them.
	Settings = warden.Settings
	// Limit is a limit of a resource.
	Limit = warden.Limit
	// User is the user with whose rights a command runs.
	User = warden.User
)

// Result says how a command ended.
type Result struct {
	Code   int            // the exit code of the command, unless a signal ended it
	Signal syscall.Signal // the signal that ended the command, or 0
	// Stopped means that the command got an order to end before it ended.
	Stopped bool
	// Rest is the number of processes that the command had left behind. These processes were ended.
	Rest int
}

// ExitCode returns the exit code in the form of a shell: 128 plus the signal if a signal ended the command.
func (r Result) ExitCode() int {
	if r.Signal != 0 {
		return 128 + int(r.Signal)
	}
	return r.Code
}

func (r Result) String() string {
	if r.Signal != 0 {
		return fmt.Sprintf("ended by signal %d (%v)", int(r.Signal), r.Signal)
	}
	return fmt.Sprintf("exit code %d", r.Code)
}

// Run runs a command to its end, and returns when no process that the command has started is left. When ctx ends, Run stops the
// command. The error says that the command was not run, or that its end is unknown.
func Run(ctx context.Context, s Spec) (Result, error) {
	var result Result
	var err error
	for range 2 { // a signal that was meant for another process may end a warden before it has its order
		var r *Ready
		if r, err = Prepare(s); err != nil {
			return Result{}, fmt.Errorf("run %s: %w", s.Argv[0], err)
		}
		if result, err = r.run(ctx, s); !errors.Is(err, errNotBegun) || !r.left() {
			break
		}
	}
	return result, err
}

// RunReady runs a command like [Run], but with the ready processes r if they are alive, otherwise with new processes. r may be nil.
func RunReady(ctx context.Context, r *Ready, s Spec) (Result, error) {
	if r == nil || !r.Alive() {
		return Run(ctx, s)
	}
	result, err := r.run(ctx, s)
	if errors.Is(err, errNotBegun) && r.left() { // another process has ended the warden at this moment
		return Run(ctx, s)
	}
	return result, err
}

// Find returns the program's file: name itself if it contains a slash, otherwise the file in $PATH. The error matches ErrNotFound or
// ErrNoExec.
func Find(name string) (string, error) {
	path, err := lookUp(name)
	switch {
	case err == nil, errors.Is(err, exec.ErrDot): // a user with "." in the path wants it
		return path, nil
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, os.ErrNotExist):
		return "", fmt.Errorf("%s: %w", name, ErrNotFound)
	}
	return "", fmt.Errorf("%s: %w: %w", name, ErrNoExec, err)
}

// lookUp is exec.LookPath, but uses the path of execvp(3) if PATH is not set, because `env -i` removes PATH.
func lookUp(name string) (string, error) {
	if _, set := os.LookupEnv("PATH"); set || strings.Contains(name, "/") {
		return exec.LookPath(name)
	}
	for _, dir := range []string{"/bin/", "/usr/bin/"} {
		if path, err := exec.LookPath(dir + name); err == nil {
			return path, nil
		}
	}
	return "", exec.ErrNotFound
}

// FindIn is [Find] for a command that has its own working directory and environment. dir may be "".
func FindIn(name, dir string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		if dir != "" && !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		return Find(name)
	}
	dirs := "/bin:/usr/bin" // the path that execvp(3) uses
	for _, e := range env {
		if v, ok := strings.CutPrefix(e, "PATH="); ok {
			dirs = v
		}
	}
	unusable := error(nil)
	for _, place := range filepath.SplitList(dirs) {
		if !filepath.IsAbs(place) {
			continue // a relative directory such as "." is meant for a person at a shell
		}
		path, err := Find(filepath.Join(place, name))
		if err == nil {
			return path, nil
		}
		if errors.Is(err, ErrNoExec) && unusable == nil {
			unusable = err
		}
	}
	if unusable != nil {
		return "", unusable
	}
	return "", fmt.Errorf("%s: %w", name, ErrNotFound)
}

// UnusableError matches [ErrNoExec]. The program's file exists, but the kernel cannot run it.
type UnusableError struct{ Name, Why string }

func (e *UnusableError) Error() string { return fmt.Sprintf("%s: %v: %s", e.Name, ErrNoExec, e.Why) }

// Is makes the error match [ErrNoExec].
func (e *UnusableError) Is(err error) bool { return err == ErrNoExec }

// errNotBegun is the error of a warden that ended without a report.
var errNotBegun = errors.New("the warden process ended before it had started the command")

// ErrTooLate means that the lease was about to end before the command began.
var ErrTooLate = errors.New("the command was not started: the lease was about to end; redis does not answer, or this host was too busy")

// SettingError says which setting of a command the kernel has refused.
type SettingError struct {
	Setting string // nice, limits or user
	Errno   syscall.Errno
}

func (e *SettingError) Error() string {
	return e.Setting + " refused by the kernel: " + e.Errno.Error()
}

// settingError returns the error of a refused setting. It returns nil for a step that belongs to no setting.
func settingError(step warden.Step, errno syscall.Errno) error {
	name := map[warden.Step]string{warden.StepNice: "nice", warden.StepLimits: "limits", warden.StepUser: "user"}[step]
	if name == "" {
		return nil
	}
	return &SettingError{name, errno}
}

// cannotStart explains why the kernel did not start a program.
func cannotStart(s Spec, errno syscall.Errno) error {
	name, path := s.Argv[0], s.Path
	if s.Dir != "" {
		if _, err := os.Stat(s.Dir); err != nil {
			//nolint:errorlint // it is not the program that is missing
			return fmt.Errorf("%s: %w: cannot use its working directory: %v", name, ErrNoExec, err)
		}
	}
	switch errno {
	case syscall.ENOEXEC:
		return &UnusableError{name, "it is not a program for this machine: was it built for another architecture?"}
	case syscall.ENOENT:
		if _, err := os.Stat(path); err != nil {
			return fmt.Errorf("%s: %w", name, ErrNotFound)
		}
		return &UnusableError{name, interpreter(path)}
	}
	return fmt.Errorf("%s: %w: %w", name, ErrNoExec, errno)
}

// interpreter returns the file that the kernel has not found: the interpreter in the first line of a script, otherwise the interpreter
// that a program is linked with.
func interpreter(path string) string {
	const most = 256 // the kernel does not read more
	f, err := os.Open(path)
	if err != nil {
		return "its interpreter does not exist"
	}
	defer f.Close() // the file was only read
	head := make([]byte, most)
	n, _ := io.ReadFull(f, head) // a shorter file is read completely
	line, _, _ := strings.Cut(string(head[:n]), "\n")
	if words := strings.Fields(strings.TrimPrefix(line, "#!")); strings.HasPrefix(line, "#!") && len(words) > 0 {
		if strings.HasSuffix(line, "\r") {
			return "its lines end in CR LF, as Windows writes them, and the kernel reads the CR as a part of the name " + words[0] +
				": save the file with LF line ends"
		}
		return "its interpreter " + words[0] + " does not exist"
	}
	return "the loader that it is linked with does not exist"
}
