package show

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"baton/internal/testsupport"
)

// holder is set in the environment of a process that reads keys until it ends.
const holder = "BATON_TEST_READS_KEYS"

// TestReadKeys reads keys in the process that has holder set. In other processes it does nothing.
func TestReadKeys(*testing.T) {
	if os.Getenv(holder) == "" {
		return
	}
	if keys, _ := Keys(os.Stdin); keys == nil {
		os.Exit(1)
	}
	select {}
}

// TestTerminalIsLeftAsItWas checks that a program that is stopped, or that a second Ctrl-C ends, restores the settings of the terminal.
func TestTerminalIsLeftAsItWas(t *testing.T) {
	master, screen := testsupport.Terminal(t)
	cmd := exec.Command(os.Args[0], "-test.run=^TestReadKeys$")
	cmd.Env = append(os.Environ(), holder+"=1")
	cmd.Stdin = screen
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // if the test has passed, the process has already ended
		_ = cmd.Wait()
	})
	press := func(key string) {
		t.Helper()
		if _, err := master.WriteString(key); err != nil {
			t.Fatal(err)
		}
	}
	testsupport.Await(t, "keys to be read one by one", func() bool { return !echoes(t, screen) })
	press("\x1a")
	testsupport.Await(t, "Ctrl-Z to stop it", func() bool { return state(t, cmd.Process.Pid) == "T" })
	if !echoes(t, screen) {
		t.Error("a program that stands still leaves the terminal without echo")
	}
	if err := cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	testsupport.Await(t, "keys to be read again", func() bool { return !echoes(t, screen) })
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for deadline := time.After(time.Minute); ; {
		press("\x03") // the first key asks the program to end; keys within the next second count as the same request
		select {
		case err := <-ended:
			if err == nil || err.Error() != "signal: interrupt" {
				t.Errorf("it ended with %v", err)
			}
			if !echoes(t, screen) {
				t.Error("its end left the terminal without echo")
			}
			return
		case <-deadline:
			t.Fatal("Ctrl-C does not end it")
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func echoes(t *testing.T, screen *os.File) bool {
	t.Helper()
	now, err := unix.IoctlGetTermios(int(screen.Fd()), getTermios)
	if err != nil {
		t.Fatal(err)
	}
	return now.Lflag&unix.ECHO != 0 && now.Lflag&unix.ICANON != 0
}

// state returns the state of a process as one letter. A stopped process has the state T.
func state(t *testing.T, pid int) string {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return rest[:1]
}
