package cmdline

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/cobra"
)

// TestACompletionThatHangsIsNotWaitedFor checks the time limit of a completion that ignores it, such as a read from a network file system.
func TestACompletionThatHangsIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cmd, over, began := &cobra.Command{}, make(chan struct{}), time.Now()
		cmd.SetContext(t.Context())
		hangs := Completion(func(context.Context, *cobra.Command, []string) []string { <-over; return []string{"late"} })
		words, _ := hangs.function()(cmd, nil, "")
		if took := time.Since(began); took != completeWithin || len(words) != 0 {
			t.Errorf("after %v: %q", took, words)
		}
		close(over)
	})
}
