package testsupport

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"baton/internal/testsupport/ground"
)

const holdServers = "TESTSUPPORT_HOLD_SERVERS"

// TestHoldServers runs in the process that TestServersDieWithAKilledTestProcess kills. Otherwise it does nothing.
func TestHoldServers(t *testing.T) {
	if os.Getenv(holdServers) == "" {
		return
	}
	dir := os.Getenv(holdServers)
	r, err := RunRedis(dir, RedisClock()) // RedisClock starts the server by another program
	if err != nil {
		t.Fatal(err)
	}
	pg, err := RunPostgres(dir)
	if err != nil {
		t.Fatal(err)
	}
	maria, err := RunMariaDB(dir)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println("servers", r.Pid(), pg.Pid(), maria.Pid())
	select {}
}

func TestServersDieWithAKilledTestProcess(t *testing.T) {
	t.Parallel()
	own, err := ground.New("", "held-") // the path of t.TempDir is too long for a server's socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(own.Remove)
	dir := own.Path
	defer sweepAll(t, dir)
	cmd := exec.Command(os.Args[0], "-test.run=^TestHoldServers$", "-test.v")
	cmd.Env = append(os.Environ(), holdServers+"="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pids []string
	for in := bufio.NewScanner(out); in.Scan(); {
		if line, ok := strings.CutPrefix(in.Text(), "servers "); ok {
			pids = strings.Fields(line)
			break
		}
		t.Log(in.Text())
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // returns an error because the process was killed
	if len(pids) != 3 {
		t.Fatalf("the other process started %v, want 3 servers", pids)
	}
	for _, s := range pids {
		pid, err := strconv.Atoi(s)
		if err != nil {
			t.Fatal(err)
		}
		awaitDeath(t, pid)
	}
}

// sweepAll checks that the next process that starts a server removes the files of a killed process.
func sweepAll(t *testing.T, dir string) {
	t.Helper()
	left, _ := filepath.Glob(filepath.Join(dir, "bt-*"))
	long := time.Now().Add(-time.Hour)
	var segments []int
	for _, d := range left {
		if id, ok := ground.SharedMemory(filepath.Join(d, "data")); ok {
			segments = append(segments, id)
		}
		if err := os.Chtimes(d, long, long); err != nil {
			t.Error(err)
		}
	}
	for _, id := range segments {
		awaitDetached(t, id)
	}
	ground.Sweep(dir)
	if after, _ := filepath.Glob(filepath.Join(dir, "bt-*")); len(left) != 3 || len(after) != 0 {
		t.Errorf("directories left by the killed process: %v; after the sweep: %v", left, after)
	}
	if len(segments) != 1 {
		t.Errorf("shared memory left by the killed process: %v, want one segment", segments)
	}
	for _, id := range segments {
		if _, err := unix.SysvShmCtl(id, unix.IPC_STAT, new(unix.SysvShmDesc)); err == nil {
			t.Errorf("shared memory %d is still there after the sweep", id)
		}
	}
}

func TestAllChildrenOfAProcessAreFound(t *testing.T) {
	for script, want := range map[string]int{"echo; exec cat": 0, "exec 3<&0; cat <&3 & cat <&3 & echo; wait": 2} {
		cmd := exec.Command("sh", "-c", script)
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		children := childrenOf(cmd.Process.Pid)
		if len(children) != want {
			t.Errorf("%s: children %v, want %d", script, children, want)
		}
		_ = in.Close() // which ends all of the held servers
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
}

// awaitDetached waits until no process uses a shared memory segment, because the backends of a killed PostgreSQL end a little later than
// its main process.
func awaitDetached(t *testing.T, id int) {
	t.Helper()
	for range 3000 {
		var stat unix.SysvShmDesc
		if _, err := unix.SysvShmCtl(id, unix.IPC_STAT, &stat); err != nil || stat.Nattch == 0 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("shared memory %d is still used by processes of a killed server", id)
}

func awaitDeath(t *testing.T, pid int) {
	t.Helper()
	for range 3000 {
		// The process that adopts the dead server may be slow to collect its exit status.
		stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) || strings.Contains(string(stat), ") Z ") {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("server %d outlives the process that started it", pid)
}
