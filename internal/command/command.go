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

// Why a command was not run.
var (
	ErrNotFound = errors.New("command not found")
	ErrNoExec   = errors.New("command cannot be run")
)

// Exit codes for a command that was not run, as a shell and env(1) have them.
const (
	CodeNoExec   = 126
	CodeNotFound = 127
)

// Spec is a command and how to run it.
type Spec struct {
	Path string   // the program's file, from [Find]
	Argv []string // with the program's name
	Env  []string // each name once; nil means this process' own
	Dir  string   // "" is the current one

	// The standard streams. Files are handed to the command as they are. No other
	// descriptor is.
	Stdin          io.Reader
	Stdout, Stderr io.Writer

	// Warden is the command line of a program that links this package, up to "warden":
	// it becomes the command's warden, see package warden.
	Warden []string
	// StopSignal asks the command to end; 0 is SIGTERM.
	StopSignal syscall.Signal
	// Settings are the settings that differ from this process.
	Settings Settings
	// Grace is the time between StopSignal and SIGKILL.
	Grace time.Duration
	// Until, if set, returns how much longer the command may live; Run calls it again and again. SIGKILL comes a little sooner, so that
	// everything is dead by then.
	Until func() time.Duration
	// Drain, if set, is the part of Until for ending the command, and may be less than Grace: unless Until grows again, SIGTERM comes
	// when about that much is left.
	Drain time.Duration
	// Signals are passed on to the command.
	Signals <-chan os.Signal
	// Terminal: if this process has a terminal, the command shares its process group, so that the terminal's keys reach the command
	// directly.
	Terminal bool
	// Begun, if set, is called when the command has begun.
	Begun func()
	// Leave background processes of the command running when it ends of its own accord.
	Leave bool
}

type (
	// Settings are the umask, priority, limits and user of a command: package warden applies them.
	Settings = warden.Settings
	// Limit is a resource limit.
	Limit = warden.Limit
	// User is the user with whose rights a command runs.
	User = warden.User
)

// Result is how a command ended.
type Result struct {
	Code   int            // its exit code, unless a signal ended it
	Signal syscall.Signal // that ended it, or 0
	// Stopped: it got an order to end before it ended.
	Stopped bool
	// Rest is how many processes the command had left behind; they were ended.
	Rest int
}

// ExitCode is the result as a shell tells it: 128 and the signal.
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

// Run runs a command to its end, and returns when no process that it has started is left. When ctx ends the command is stopped. The error
// says that the command was not run, or that its end is unknown.
func Run(ctx context.Context, s Spec) (Result, error) {
	var result Result
	var err error
	for range 2 { // a signal that was meant for others may end a warden before it has its order
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

// RunReady is [Run] by the ready processes, if they are alive, otherwise by new ones. r may be nil.
func RunReady(ctx context.Context, r *Ready, s Spec) (Result, error) {
	if r == nil || !r.Alive() {
		return Run(ctx, s)
	}
	result, err := r.run(ctx, s)
	if errors.Is(err, errNotBegun) && r.left() { // somebody has ended it at this moment
		return Run(ctx, s)
	}
	return result, err
}

// Find returns the program's file: name itself if there is a slash in it, else
// what $PATH has. The error matches ErrNotFound or ErrNoExec.
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

// lookUp is exec.LookPath, with execvp(3)'s path if PATH is not set: `env -i` removes it.
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

// FindIn is [Find] for a command that has a working directory and an environment of
// its own: dir may be "".
func FindIn(name, dir string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		if dir != "" && !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		return Find(name)
	}
	dirs := "/bin:/usr/bin" // execvp(3)'s
	for _, e := range env {
		if v, ok := strings.CutPrefix(e, "PATH="); ok {
			dirs = v
		}
	}
	unusable := error(nil)
	for _, place := range filepath.SplitList(dirs) {
		if !filepath.IsAbs(place) {
			continue // "." is for people
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

// UnusableError matches [ErrNoExec]: the program's file is there, and the kernel cannot run it.
type UnusableError struct{ Name, Why string }

func (e *UnusableError) Error() string { return fmt.Sprintf("%s: %v: %s", e.Name, ErrNoExec, e.Why) }

// Is makes it an [ErrNoExec].
func (e *UnusableError) Is(err error) bool { return err == ErrNoExec }

// errNotBegun is the error of a warden that ended without a report.
var errNotBegun = errors.New("its warden ended before it had started the command")

// ErrTooLate says that the lease was about to end when the command was to begin.
var ErrTooLate = errors.New("it was not begun: its time was over before its turn came; redis does not answer, or this host was too busy")

// SettingError says which setting of a command the kernel refuses.
type SettingError struct {
	Setting string // nice, limits or user
	Errno   syscall.Errno
}

func (e *SettingError) Error() string {
	return e.Setting + " refused by the kernel: " + e.Errno.Error()
}

// settingError is nil for a step that belongs to no setting.
func settingError(step warden.Step, errno syscall.Errno) error {
	name := map[warden.Step]string{warden.StepNice: "nice", warden.StepLimits: "limits", warden.StepUser: "user"}[step]
	if name == "" {
		return nil
	}
	return &SettingError{name, errno}
}

// cannotStart tells why the kernel did not start a program.
func cannotStart(s Spec, errno syscall.Errno) error {
	name, path := s.Argv[0], s.Path
	if s.Dir != "" {
		if _, err := os.Stat(s.Dir); err != nil {
			//nolint:errorlint // it is not the program that is missing
			return fmt.Errorf("%s: %w: its working directory: %v", name, ErrNoExec, err)
		}
	}
	switch errno {
	case syscall.ENOEXEC:
		return &UnusableError{name, "it is no program for this machine: was it built for another architecture?"}
	case syscall.ENOENT:
		if _, err := os.Stat(path); err != nil {
			return fmt.Errorf("%s: %w", name, ErrNotFound)
		}
		return &UnusableError{name, interpreter(path)}
	}
	return fmt.Errorf("%s: %w: %w", name, ErrNoExec, errno)
}

// interpreter says which file the kernel has not found: the interpreter in the first line of a script, or else the one that a program is
// linked with.
func interpreter(path string) string {
	const most = 256 // the kernel reads no more
	f, err := os.Open(path)
	if err != nil {
		return "its interpreter is not there"
	}
	defer f.Close() // it was read
	head := make([]byte, most)
	n, _ := io.ReadFull(f, head) // a shorter file is read whole
	line, _, _ := strings.Cut(string(head[:n]), "\n")
	if words := strings.Fields(strings.TrimPrefix(line, "#!")); strings.HasPrefix(line, "#!") && len(words) > 0 {
		if strings.HasSuffix(line, "\r") {
			return "its lines end in CR LF, as Windows writes them, and the kernel takes the CR for a part of the name " + words[0] +
				": save it with LF alone"
		}
		return "its interpreter " + words[0] + " is not there"
	}
	return "the loader that it is linked with is not there"
}
