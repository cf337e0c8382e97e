package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"baton/cmd/baton/internal/cmdline"
)

func TestEveryExitCodeIsExplainedWhereverItIsLookedFor(t *testing.T) {
	topic, lock, page := newExitCodesTopic().Long, newLockCommand(cmdline.Env{}).Long, exitCodesPage()
	for _, code := range exitCodes() {
		line := fmt.Sprintf("  %3d  %s", code.code, code.means)
		if !strings.Contains(topic, line) || !strings.Contains(page, fmt.Sprintf("| %d | %s |", code.code, unmarked(code.means))) {
			t.Errorf("%d is not explained:\n%s\n%s", code.code, topic, page)
		}
		if code.lock && !strings.Contains(lock, line) {
			t.Errorf("%d is not explained in the help of lock", code.code)
		}
		for _, name := range code.of {
			if cmd, rest, err := newRootCommand(cmdline.Env{}).Find(strings.Fields(name)); err != nil || len(rest) > 0 || !cmd.Runnable() {
				t.Errorf("%d is of %q, which is no command", code.code, name)
			}
		}
	}
}

// TestExitCodesComeAbout produces each exit code. The exit codes of a leader whose work does not end, and of a lost lock, end a process, so
// test/process produces them.
func TestExitCodesComeAbout(t *testing.T) {
	c, server := newCLI(t), useRedis(t)
	c.env["BATON_REDIS"] = server.URL()
	if err := os.WriteFile("no-program", []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		code int
		args string
	}{
		{cmdline.ExitOK, "status"},
		{cmdline.ExitFailure, "release --owner 0b9b3f6e-6f0a-4c43-8d5e-3c1f6b1d8a52"},
		{cmdline.ExitUsage, "status --interval"},
		{cmdline.ExitUsage, "config check nowhere.yaml"},
		{cmdline.ExitNoLeader, "leader"},
		{cmdline.ExitNoLeader, "stepdown"},
		{cmdline.ExitNoLeader, "stepdown --all-locks"},
		{cmdline.ExitNoLeader, "drill"},
		{cmdline.ExitNoLeader, "lock --break nobody"},
	} {
		if got := c.run(strings.Fields(tc.args)...); got.code != tc.code {
			t.Errorf("baton %s: %d, want %d: %+v", tc.args, got.code, tc.code, got)
		}
	}
}
