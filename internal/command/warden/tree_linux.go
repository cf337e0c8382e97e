package warden

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"syscall"
)

// descendants lists the processes below root that have not ended. If a process forks during the search, its child may be missing, so
// the caller must search again.
func descendants(root int) []int {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()                // the directory was only read
	names, _ := dir.Readdirnames(-1) // the names that could be read are enough
	children := map[int][]int{}
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			if parent, ok := parentOf(name); ok {
				children[parent] = append(children[parent], pid)
			}
		}
	}
	var found []int
	for queue := children[root]; len(queue) > 0; {
		pid := queue[0]
		queue = append(queue[1:], children[pid]...)
		found = append(found, pid)
	}
	return found
}

// listed finds descendants with the kernel's list of children of each process. This is quick, however many other processes there are, but
// the lists may leave out processes while other processes end. As soon as listed has read a process, it calls the function each with the
// process ID. ok says whether this kernel has such lists.
func listed(root int, each func(pid int)) (found []int, ok bool) {
	for queue := []int{root}; len(queue) > 0; queue = queue[1:] {
		tasks := "/proc/" + strconv.Itoa(queue[0]) + "/task/"
		dir, err := os.Open(tasks)
		if err != nil {
			continue // the process has ended
		}
		threads, _ := dir.Readdirnames(-1)
		_ = dir.Close()
		for _, thread := range threads {
			text, err := os.ReadFile(tasks + thread + "/children")
			ok = ok || err == nil
			for word := range bytes.FieldsSeq(text) {
				if pid, err := strconv.Atoi(string(word)); err == nil {
					each(pid)
					queue, found = append(queue, pid), append(found, pid)
				}
			}
		}
	}
	return found, ok
}

// parentOf returns the parent of a process. It returns false if the process has ended.
func parentOf(pid string) (int, bool) {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return 0, false
	}
	// The format is pid (name) state ppid …, and the name may contain spaces and parentheses.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	const threads = 17
	if len(fields) <= threads || fields[0][0] == 'X' {
		return 0, false
	}
	// A process whose first thread has ended looks like a zombie, but is not a zombie.
	if fields[0][0] == 'Z' && string(fields[threads]) == "1" {
		return 0, false
	}
	parent, err := strconv.Atoi(string(fields[1]))
	return parent, err == nil
}

func signalEach(pids []int, s syscall.Signal) {
	for _, pid := range pids {
		_ = syscall.Kill(pid, s) // the process may have ended
	}
}

// stopSignal returns the signal that asks the command to end.
func (s Setup) stopSignal() syscall.Signal {
	if s.StopSignal == 0 {
		return syscall.SIGTERM
	}
	return syscall.Signal(s.StopSignal)
}

// reap waits for every child, including adopted orphans. It sends the exit status of the command, and closes the channel when no child is
// left. It never waits for the receiver of the exit status. A command that forks without end has thousands of orphans, and each orphan must
// leave the process table before the next sweep.
func reap(command int) <-chan syscall.WaitStatus {
	ended := make(chan syscall.WaitStatus, 1)
	go func() {
		defer close(ended)
		sent := false // another process may get the command's process ID later
		for {
			var status syscall.WaitStatus
			pid, err := syscall.Wait4(-1, &status, syscall.WALL, nil)
			switch {
			case errors.Is(err, syscall.EINTR):
			case err != nil:
				return
			case pid == command && !sent:
				sent = true
				ended <- status
			}
		}
	}()
	return ended
}
