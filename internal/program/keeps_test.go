package program

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"baton/internal/testsupport"
)

// forgetful is an output store that fails some times, as if it could not be reached.
type forgetful struct {
	pieces
	fails int
}

func (f *forgetful) AppendOutput(ctx context.Context, o Output) error {
	f.mu.Lock()
	fails := f.fails > 0
	f.fails--
	f.mu.Unlock()
	if fails {
		return errors.New("connection refused")
	}
	return f.pieces.AppendOutput(ctx, o)
}

// If Redis does not accept a piece of output, for example during a failover, the piece is sent again.
func TestOutputThatWasNotTakenIsSentAgain(t *testing.T) {
	kept := &forgetful{fails: 2}
	taken := func() bool {
		kept.mu.Lock()
		defer kept.mu.Unlock()
		return kept.fails < 0
	}
	p := newPrintout(nil, 1<<16, func(ctx context.Context, offset int64, text []byte) error {
		return kept.AppendOutput(ctx, Output{Offset: offset, Text: text})
	}, nil, zap.NewNop())
	_, _ = p.Write([]byte("first\n"))
	testsupport.Await(t, "what was not taken to be sent again", taken)
	_, _ = p.Write([]byte("last\n"))
	p.close(time.Minute)
	if got := kept.text(t); got != "first\nlast\n" {
		t.Errorf("kept %q", got)
	}
}

// A command can read every file that the daemon's user can read.
func TestWhatTheDaemonKnowsIsTakenOutOfTheOutput(t *testing.T) {
	j, o, kept := trial("echo the password is hunter2-hunter2")
	o.Known = func() []string { return []string{"hunter2-hunter2"} }
	result, err := New(j, errLeaseLost, o).Run(t.Context(), oneRun)
	if err != nil {
		t.Fatal(err)
	}
	if all := result.Output + kept.text(t); strings.Contains(all, "hunter2") || strings.Count(all, "the password is ***\n") != 2 {
		t.Errorf("%q", all)
	}
}
