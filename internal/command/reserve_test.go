//go:build linux

package command_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"baton/internal/command"
	"baton/internal/testsupport"
)

// reserve returns a Reserve that keeps size wardens ready until the test ends.
func reserve(t *testing.T, size int) *command.Reserve {
	t.Helper()
	r := command.NewReserve(warden())
	ctx, stop := context.WithCancel(context.Background())
	filled := make(chan struct{})
	go func() {
		defer close(filled)
		r.Fill(ctx)
	}()
	t.Cleanup(func() { stop(); <-filled })
	r.Keep(size)
	full(t, r, size)
	return r
}

func full(t *testing.T, r *command.Reserve, size int) {
	t.Helper()
	testsupport.Await(t, fmt.Sprintf("%d ready wardens", size), func() bool { return r.Ready() == size })
}

// childrenOf returns the living children of a process.
func childrenOf(t *testing.T, parent int) (pids []int) {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range stats {
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		if s := stat(pid); len(s) > 1 && s[1] == strconv.Itoa(parent) && s[0] != "Z" {
			pids = append(pids, pid)
		}
	}
	return pids
}

// childless waits until no child of the test lives.
func childless(t *testing.T) {
	t.Helper()
	testsupport.Await(t, "the children to end", func() bool { return len(childrenOf(t, os.Getpid())) == 0 })
}

// wardenOf waits for a guard's warden.
func wardenOf(t *testing.T, guard int) int {
	t.Helper()
	var pids []int
	testsupport.Await(t, "the guard's warden", func() bool { pids = childrenOf(t, guard); return len(pids) == 1 })
	return pids[0]
}

// ask runs a script that prints which guard its warden has.
func ask(t *testing.T, r *command.Reserve, script string) (guard int, output string) {
	t.Helper()
	var out bytes.Buffer
	s := sh(`echo $PPID; ` + script)
	s.Stdout, s.Stderr = &out, &out
	begun := make(chan struct{})
	s.Begun = func() { close(begun) }
	s.Env, s.Dir = []string{"WORD=a b"}, "/"
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	result, err := r.Run(ctx, s)
	if err != nil || result.Code != 3 || result.Stopped {
		t.Fatalf("%+v, %v: %s", result, err, &out)
	}
	first, rest, _ := strings.Cut(out.String(), "\n")
	pid, _ := strconv.Atoi(first)
	return pid, rest
}

func TestACommandRunsByAWardenThatWasReady(t *testing.T) {
	r := reserve(t, 2)
	var wardens []int
	for _, guard := range childrenOf(t, os.Getpid()) {
		wardens = append(wardens, wardenOf(t, guard))
	}
	if len(wardens) != 2 {
		t.Fatalf("%d wardens are ready", len(wardens))
	}
	seen := map[int]bool{}
	for range 2 {
		// The warden is gone when the test reads its process ID. If the test has seen it before, it was ready.
		pid, out := ask(t, r, `pwd; echo "$WORD"; env | grep -c TEST; echo error >&2; exit 3`)
		if out != "/\na b\n0\nerror\n" {
			t.Errorf("the command says %q", out)
		}
		seen[pid] = true
	}
	for _, pid := range wardens {
		if !seen[pid] {
			t.Errorf("the wardens %v were ready, and %v were used", wardens, seen)
		}
	}
	if pid, _ := ask(t, r, "exit 3"); seen[pid] {
		t.Error("a warden was used twice")
	}
	full(t, r, 2)
	r.Keep(100)
	full(t, r, command.MostReady)
	r.Keep(0)
	full(t, r, 0)
	childless(t)
}

// A warden that ends while it waits must not affect any command.
func TestAWardenThatWasEndedWhileItWaitedIsNotUsed(t *testing.T) {
	for name, end := range map[string]func(guard, warden int){
		"the warden is killed":     func(_, warden int) { _ = syscall.Kill(warden, syscall.SIGKILL) },
		"the guard is terminated":  func(guard, _ int) { _ = syscall.Kill(guard, syscall.SIGTERM) },
		"the warden is terminated": func(_, warden int) { _ = syscall.Kill(warden, syscall.SIGTERM) },
	} {
		t.Run(name, func(t *testing.T) {
			r := reserve(t, 1)
			guard := childrenOf(t, os.Getpid())[0]
			end(guard, wardenOf(t, guard))
			full(t, r, 0)
			ask(t, r, "exit 3")
			full(t, r, 1)
		})
	}
}

// A warden that was killed with its guard is noticed when it gets a command, or earlier: the command does not count as run.
func TestAGuardThatWasKilledWhileItWaitedRunsNothingTwice(t *testing.T) {
	r := reserve(t, 1)
	guard := childrenOf(t, os.Getpid())[0]
	if err := syscall.Kill(guard, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	full(t, r, 0)
	marks := filepath.Join(t.TempDir(), "marks")
	ask(t, r, "echo >> "+marks+"; exit 3")
	if b, err := os.ReadFile(marks); string(b) != "\n" || err != nil {
		t.Errorf("the command ran %d times, %v", len(b), err)
	}
}

// A stopped warden cannot read its order, and no error would report this.
func TestAWardenThatWasStoppedWhileItWaitedGoesOn(t *testing.T) {
	for name, victims := range map[string]func(guard, warden int) []int{
		"the warden": func(_, warden int) []int { return []int{warden} },
		"both":       func(guard, warden int) []int { return []int{warden, guard} },
	} {
		t.Run(name, func(t *testing.T) {
			r := reserve(t, 1)
			guard := childrenOf(t, os.Getpid())[0]
			for _, pid := range victims(guard, wardenOf(t, guard)) {
				if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
					t.Fatal(err)
				}
			}
			ask(t, r, "exit 3")
		})
	}
}

func TestAWardenThatWasEndedWhileItWaitedIsReplaced(t *testing.T) {
	r := reserve(t, 1)
	guard := childrenOf(t, os.Getpid())[0]
	if err := syscall.Kill(wardenOf(t, guard), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	full(t, r, 0)
	full(t, r, 1)
}

// The output of the command is read as long as the command goes on.
func TestTheOutputOfACommandThatLostItsGuardArrives(t *testing.T) {
	var out bytes.Buffer
	s := sh(`sleep 3; echo more; echo more; exit 7`)
	s.Stdout, s.Stderr = &out, &out
	s.Begun = func() { _ = syscall.Kill(childrenOf(t, os.Getpid())[0], syscall.SIGKILL) }
	if r := run(t, t.Context(), s); r.Code != 7 || out.String() != "more\nmore\n" {
		t.Errorf("%+v: %q", r, &out)
	}
}

// keeper keeps wardens ready until it is killed.
func keeper() int {
	r := command.NewReserve(warden())
	r.Keep(command.MostReady)
	go r.Fill(context.Background())
	for r.Ready() < command.MostReady {
		time.Sleep(time.Millisecond)
	}
	fmt.Println("ready")
	select {}
}

func TestWardensThatWaitEndWithWhoeverKeepsThem(t *testing.T) {
	cmd := exec.Command("/proc/self/exe", "keeper")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		t.Fatalf("%q, %v", line, err)
	}
	var all []int
	for _, guard := range childrenOf(t, cmd.Process.Pid) {
		all = append(all, guard, wardenOf(t, guard))
	}
	if len(all) != 2*command.MostReady {
		t.Fatalf("processes %v wait", all)
	}
	_ = cmd.Process.Kill()
	for _, pid := range all {
		testsupport.Await(t, fmt.Sprintf("process %d to end", pid), func() bool { s := stat(pid); return len(s) == 0 || s[0] == "Z" })
	}
}

// The node may have stood still between the sending of the order and the start of the command.
func TestACommandWhoseTimeIsOverIsNotBegun(t *testing.T) {
	mark := filepath.Join(t.TempDir(), "mark")
	s := sh("echo > " + mark)
	s.Until = func() time.Duration { return 10 * time.Millisecond }
	s.Begun = func() { t.Error("it has begun") }
	if result, err := command.Run(t.Context(), s); !strings.Contains(fmt.Sprint(err), command.ErrTooLate.Error()) {
		t.Errorf("%+v, %v; want that it was too late", result, err)
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("the command was begun")
	}
}
