package cmdline

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/cobra"
)

// A file system of the network heeds no limit.
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
