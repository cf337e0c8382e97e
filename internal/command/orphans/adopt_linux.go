package orphans

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// lookEvery is the pause between two checks for orphans, because the kernel sends no signal for an orphan that lives on.
const lookEvery = 250 * time.Millisecond

// Adopt takes care of orphans until ctx ends. It returns at once if this process gets no orphans.
func Adopt(ctx context.Context) {
	if !adopting() {
		return
	}
	for {
		own.look()
		select {
		case <-ctx.Done():
			return
		case <-time.After(lookEvery):
		}
	}
}

// Look reaps or kills the current orphans, if this process gets orphans.
func Look() {
	if adopting() {
		own.look()
	}
}

// look reaps the orphans that have ended, and kills the orphans of commands.
func (c *children) look() {
	for _, pid := range c.orphans() {
		reaped, err := syscall.Wait4(pid, nil, syscall.WNOHANG|syscall.WALL, nil)
		if reaped != 0 || err != nil {
			continue
		}
		if environ, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "environ")); err == nil && ofRun(environ) {
			_ = syscall.Kill(pid, syscall.SIGKILL) // the process may have ended
		}
	}
}

// orphans returns the children that this process did not start.
func (c *children) orphans() (found []int) {
	c.starting.Lock() // so that all children that this process has started are known
	defer c.starting.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	lists, _ := filepath.Glob("/proc/self/task/*/children") // the pattern is valid
	for _, list := range lists {
		text, _ := os.ReadFile(list) // the thread may have ended
		for word := range strings.FieldsSeq(string(text)) {
			if pid, err := strconv.Atoi(word); err == nil && c.known[pid] == nil {
				found = append(found, pid)
			}
		}
	}
	return found
}
