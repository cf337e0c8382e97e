package daemon

import (
	"context"
	"path/filepath"
	"testing"

	"go.uber.org/zap"

	"baton/internal/daemon/epochs"
	"baton/internal/elector"
)

// After a power cut, only the files that a daemon has written show its term.
func TestAnEpochIsWrittenAsSoonAsItIsHeardOf(t *testing.T) {
	o, _ := newObserver(t)
	path := filepath.Join(t.TempDir(), "epoch.json")
	o.epochs = epochs.Open(path, "baton", &epochs.File{}, zap.NewNop())
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); o.keepFiles(ctx) }()
	defer func() { cancel(); <-done }()
	for _, ev := range []elector.Event{{Kind: elector.EventStandby, Holder: "b", Epoch: 15}, {Kind: elector.EventWon, Owner: "o", Epoch: 16}} {
		o.observe(ev)
		await(t, "the epoch to be in the file", func() bool { return epochs.Open(path, "baton", &epochs.File{}, zap.NewNop()).Known().Epoch == ev.Epoch })
	}
}

// lookup returns a function that looks up a variable in env.
func lookup(env map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) { v, ok := env[name]; return v, ok }
}
