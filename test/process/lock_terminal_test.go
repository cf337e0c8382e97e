package process

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"baton/internal/testsupport"
)

// lockAt starts `baton lock` as the only process of a terminal's session, with none
// of its standard streams there.
func (l *locks) lockAt(terminal *os.File, args ...string) *locker {
	l.t.Helper()
	p := &locker{t: l.t, done: make(chan struct{})}
	p.cmd = exec.Command(filepath.Join(l.dir, "baton"), append([]string{"lock"}, args...)...)
	p.cmd.ExtraFiles = []*os.File{terminal}
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 3}
	l.run(p)
	return p
}

// A password is asked for at the terminal itself. A command in the background would
// be stopped there, and its lock kept for ever.
func TestACommandMayAskAtTheTerminalWhateverItsStandardInputIs(t *testing.T) {
	t.Parallel()
	l := newLocks(t, testsupport.StartRedis(t))
	ours, theirs := testsupport.Terminal(t)
	p := l.lockAt(theirs, "a", "-c", "echo x > began; read answer < /dev/tty; echo got $answer; exit 7")
	l.file("began")
	if _, err := ours.WriteString("secret\n"); err != nil {
		t.Fatal(err)
	}
	p.want(7, "got secret\n", "")
}

func TestATerminalsInterruptReachesTheCommandOnce(t *testing.T) {
	t.Parallel()
	l := newLocks(t, testsupport.StartRedis(t))
	ours, theirs := testsupport.Terminal(t)
	p := l.lockAt(theirs, "a", "-c", "trap 'echo got; echo x > heard' INT; trap 'echo x > later' USR1; echo x > began; until [ -e enough ]; do :; done; exit 7") // no child, of whose death by a signal the shell would tell
	l.file("began")
	if _, err := ours.WriteString("\x03"); err != nil {
		t.Fatal(err)
	}
	l.file("heard")
	p.signal(syscall.SIGUSR1) // what is passed on after the interrupt, comes after it
	l.file("later")
	if err := os.WriteFile(filepath.Join(l.dir, "enough"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p.want(7, "got\n", "")
}

func TestAStoppedCommandCanBeEnded(t *testing.T) {
	t.Parallel()
	l := newLocks(t, testsupport.StartRedis(t))
	p := l.lock("a", "-c", "trap 'exit 7' TERM; echo x > began; kill -STOP $$; sleep 60")
	l.file("began")
	p.signal(syscall.SIGTERM)
	if e := p.wait(); e.code != 7 && e.code != 128+int(syscall.SIGTERM) {
		t.Errorf("%+v", e)
	}
}
