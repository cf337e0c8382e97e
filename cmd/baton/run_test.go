package main

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// asBaton names the arguments with which the program of the tests is baton itself.
const asBaton = "BATON_TEST_ARGUMENTS"

func TestTheDaemonOutlivesWhoReadsItsLog(t *testing.T) {
	if args := os.Getenv(asBaton); args != "" {
		os.Args = append([]string{"baton"}, strings.Fields(args)...)
		main()
	}
	log, written, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	// No Redis is there: it is only to log, and to end in order.
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), "RUNTIME_DIRECTORY="+dir, "STATE_DIRECTORY="+dir, asBaton+"=run --redis redis://127.0.0.1:1/0 --http off")
	cmd.Stdout, cmd.Stderr = written, written
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = written.Close()
	began := false
	for lines := bufio.NewScanner(log); !began && lines.Scan(); {
		began = strings.Contains(lines.Text(), "started")
	}
	_ = log.Close()
	if !began {
		t.Error("the daemon did not start")
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	ended := time.AfterFunc(20*time.Second, func() { _ = cmd.Process.Kill() })
	defer ended.Stop()
	if err := cmd.Wait(); err != nil {
		t.Errorf("it logs that it stops, and nobody reads: %v", err)
	}
}
