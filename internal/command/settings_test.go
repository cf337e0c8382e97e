//go:build linux

package command_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"

	"baton/internal/command"
)

// theirGroup is a supplementary group of the user that a lender gives its command.
const theirGroup = 45678

// lender runs a command as another user, like a daemon that has the capabilities for this but is not root.
func lender(uid, script string) int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	r, w, err := os.Pipe()
	if err != nil {
		return 1
	}
	go func() { // a line of output says that the command has begun, and then it must end
		if n, _ := r.Read(make([]byte, 1)); n > 0 {
			cancel()
		}
	}()
	s := sh(script)
	s.Stdout, s.Stderr = os.Stdout, w
	if number, err := strconv.Atoi(uid); err == nil {
		s.Settings.User = &command.User{UID: number, GID: number, Groups: []int{theirGroup}}
	}
	result, err := command.Run(ctx, s)
	fmt.Println(result, err)
	return 0
}

// A daemon that has the capability to change users must not pass it on to its commands.
func TestCommandsDoNotInheritWhatGivesThemAUser(t *testing.T) {
	if os.Geteuid() != 0 {
		want := &command.SettingError{Setting: "user", Errno: syscall.EPERM}
		err := command.Try(warden(), command.Settings{User: &command.User{UID: 12345, GID: 12345}})
		if got, ok := errors.AsType[*command.SettingError](err); !ok || *got != *want {
			t.Errorf("%v, want %v", err, want)
		}
		return
	}
	const mine, myGroup = 23456, 34567
	for uid, want := range map[string]string{
		"12345": fmt.Sprintf("12345\n12345 %d", theirGroup), // the command is in none of the daemon's groups
		"-":     fmt.Sprintf("%d\n%d %d", mine, mine, myGroup),
	} {
		cmd := exec.Command("/proc/self/exe", "lender", uid,
			`id -u; id -G; grep -E '^Cap(Prm|Amb)' /proc/self/status; trap '' TERM; echo >&2; while :; do sleep 0.01; done`)
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Credential:  &syscall.Credential{Uid: mine, Gid: mine, Groups: []uint32{myGroup}},
			AmbientCaps: []uintptr{5, 6, 7},
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		select {
		case err := <-ended:
			if err != nil {
				t.Fatalf("%v\n%s", err, out.String())
			}
		case <-time.After(soon):
			t.Fatal("a command of another user is not ended")
		}
		none := "\t0000000000000000\n"
		text := want + "\nCapPrm:" + none + "CapAmb:" + none + "ended by signal 9 (killed) <nil>\n"
		if out.String() != text {
			t.Errorf("%s: %q, want %q", uid, out.String(), text)
		}
	}
}

// The kernel resets the death signal of a process that changes its user. Without that signal, no other process kills the command here.
func TestACommandOfAnotherUserDiesWithItsWarden(t *testing.T) {
	uid := "-"
	if os.Geteuid() == 0 {
		uid = "12345"
	}
	cmd := exec.Command("/proc/self/exe", "lender", uid, `trap '' TERM; echo $$ $PPID; while :; do sleep 0.01; done`)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pid, watcher int
	if _, err := fmt.Fscan(out, &pid, &watcher); err != nil {
		t.Fatal(err)
	}
	guard, err := strconv.Atoi(stat(watcher)[1])
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(syscall.Kill(cmd.Process.Pid, syscall.SIGSTOP), syscall.Kill(guard, syscall.SIGSTOP), syscall.Kill(watcher, syscall.SIGKILL))
	if err != nil {
		t.Error(err)
	}
	killed := time.Now()
	for s := stat(pid); len(s) > 0 && s[0] != "Z"; s = stat(pid) {
		if time.Since(killed) > soon {
			t.Errorf("the command is alive (%s) although its warden is dead", s[0])
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	err = errors.Join(syscall.Kill(guard, syscall.SIGCONT), syscall.Kill(cmd.Process.Pid, syscall.SIGCONT), cmd.Wait())
	if err != nil {
		t.Error(err)
	}
}

// A command that cannot be started reports the reason, whichever way starts it.
func TestACommandWithSettingsThatCannotBeBegunSaysWhy(t *testing.T) {
	mask := 0o22
	for name, path := range map[string]string{"no such file or directory": "/no/such", "permission denied": "/etc/passwd"} {
		s := sh("")
		s.Path, s.Settings.Umask = path, &mask
		_, err := command.Run(t.Context(), s)
		if !errors.Is(err, command.ErrNotFound) && !errors.Is(err, command.ErrNoExec) {
			t.Errorf("%s: %v", name, err)
		}
	}
	script := t.TempDir() + "/script"
	if err := os.WriteFile(script, []byte("exit 7\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	s := sh("")
	s.Path, s.Argv, s.Settings.Umask = script, []string{"script"}, &mask
	if r := run(t, t.Context(), s); r.Code != 7 {
		t.Errorf("a script that names no shell: %+v", r)
	}
}
