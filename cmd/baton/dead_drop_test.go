package main

import (
	"context"
	"testing"

	"baton/cmd/baton/internal/cmdline"
)

func TestTheQuestionBeforeADropIsAnsweredByYesNoOrCtrlC(t *testing.T) {
	for answer, dropped := range map[string]bool{"y\n": true, "YES\n": true, "n\n": false, "\n": false, "maybe\n": false, "": false} {
		seen, screen := terminal(t, 80, 24)
		told := &buffer{}
		ctx, interrupt := context.WithCancel(t.Context())
		t.Cleanup(interrupt)
		if answer == "" {
			interrupt() // like main at Ctrl-C
			answer = "y\n"
			t.Cleanup(func() { _, _ = seen.master.WriteString(answer) }) // ends the goroutine that reads
		} else if _, err := seen.master.WriteString(answer); err != nil {
			t.Fatal(err)
		}
		err := cmdline.Confirm(ctx, cmdline.Env{Stdin: screen, Stderr: told}, "Drop 1 dead letter for good?")
		if (err == nil) != dropped {
			t.Errorf("%q: %v, told %q", answer, err, told)
		}
	}
}
