package command

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
)

// descendants lists the processes below root that have not ended. One that forks
// meanwhile may have a child that is not in it: look again.
func descendants(root int) []int {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()                // it was read only
	names, _ := dir.Readdirnames(-1) // what could be read must do
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

// parentOf reads a process' parent; false if it has ended.
func parentOf(pid string) (int, bool) {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return 0, false
	}
	// pid (name) state ppid …: the name may hold spaces and parentheses.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	const threads = 17
	if len(fields) <= threads || fields[0][0] == 'X' {
		return 0, false
	}
	// A process whose first thread has ended looks like a dead one, and is none.
	if fields[0][0] == 'Z' && string(fields[threads]) == "1" {
		return 0, false
	}
	parent, err := strconv.Atoi(string(fields[1]))
	return parent, err == nil
}

func signalEach(pids []int, s syscall.Signal) {
	for _, pid := range pids {
		_ = syscall.Kill(pid, s) // it may have ended
	}
}
