package warden

import (
	"os"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

// bombSize is the limit of processes of a bomb.
const bombSize = 64

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "bomb" {
		bomb()
	}
	os.Exit(m.Run())
}

// bomb forks without end, with a new session for each process, until it reaches its limit of processes, and forks again as soon as a
// process has ended. It ends by itself, so that a failed test does not leave it behind.
func bomb() {
	const ofProcesses = 6 // RLIMIT_NPROC
	if err := syscall.Setrlimit(ofProcesses, &syscall.Rlimit{Cur: bombSize, Max: bombSize}); err != nil {
		os.Exit(1)
	}
	end, pause := Now().Add(2*time.Minute), syscall.Timespec{Nsec: int64(time.Millisecond)}
	for Now() < end { // no state of Go's runtime exists in a child
		if child, _, _ := syscall.RawSyscall6(syscall.SYS_CLONE, uintptr(syscall.SIGCHLD), 0, 0, 0, 0, 0); child == 0 {
			_, _, _ = syscall.RawSyscall(syscall.SYS_SETSID, 0, 0, 0)
			continue
		}
		_, _, _ = syscall.RawSyscall(syscall.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&pause)), 0, 0)
	}
	_, _, _ = syscall.RawSyscall(syscall.SYS_EXIT_GROUP, 0, 0, 0)
}

// A bomb at its limit of processes forks into the room of each killed process, so all processes must be stopped first.
func TestAForkBombStandsStillBeforeAnyOfItIsKilled(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("it needs root: a limit of processes counts all of a user, and root has none")
	}
	if err := becomeReaper(); err != nil {
		t.Fatal(err)
	}
	user := uint32(1_000_000_000 + os.Getpid()) // no other process has this user
	pid, err := syscall.ForkExec("/proc/self/exe", []string{"test", "bomb"}, &syscall.ProcAttr{
		Env: []string{"GOMAXPROCS=1"}, Sys: &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for len(descendants(os.Getpid())) < bombSize/2 { // the threads of the bomb also count
		if syscall.Kill(pid, 0) != nil {
			t.Fatal("the bomb has ended by itself")
		}
		time.Sleep(time.Millisecond)
	}
	ended, s := reap(pid), sweeper{}
	held := map[int]bool{}
	for _, pid := range s.hold() {
		held[pid] = true
	}
	for _, pid := range descendants(os.Getpid()) {
		if !held[pid] {
			t.Errorf("process %d was not stopped", pid)
		}
	}
	killed := s.sweep()
	if len(killed) != len(held) {
		t.Errorf("%d processes were stopped, and %d killed: some of them forked", len(held), len(killed))
	}
	for _, pid := range killed {
		for syscall.Kill(pid, 0) == nil {
			time.Sleep(time.Millisecond)
		}
	}
	if left := s.sweep(); len(left) > 0 {
		t.Errorf("%d processes are left", len(left))
		for len(s.sweep()) > 0 {
			time.Sleep(time.Millisecond)
		}
	}
	if status, ok := <-ended; !ok || status.Signal() != syscall.SIGKILL {
		t.Errorf("the bomb's end: %v, %v", status, ok)
	}
}
