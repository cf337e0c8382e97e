package command

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"time"
)

// MostReady is the maximum number of wardens that a [Reserve] keeps ready.
const MostReady = 4

// calm is how long no new command must have begun before wardens are made ready, because commands that begin need the processor.
const calm = time.Second

// lookAfter is the interval between two checks of the ready wardens. If wardens do not stay alive, or cannot be started, the first pause
// before the next start is as long as calm. The pause then doubles each time, up to lookAfter.
const lookAfter = 30 * time.Second

// Reserve runs commands. Wardens that were started in advance run the first commands.
type Reserve struct {
	warden []string
	wake   chan struct{}

	mu    sync.Mutex
	size  int
	spare []spareWarden
	taken time.Time     // when a command last began
	rest  time.Duration // the pause before the next warden is started, because previous wardens did not stay alive
}

// spareWarden is a ready warden. The target of its command's output is set later.
type spareWarden struct {
	*Ready
	output *lateWriter
}

// NewReserve returns a Reserve for the Warden of a [Spec]. The Reserve keeps no warden before [Reserve.Fill].
func NewReserve(warden []string) *Reserve {
	return &Reserve{warden: warden, wake: make(chan struct{}, 1)}
}

// Keep sets the number of commands that may begin at the same moment, and thereby the number of wardens to keep.
func (r *Reserve) Keep(commands int) {
	r.mu.Lock()
	r.size = min(commands, MostReady)
	r.mu.Unlock()
	r.wakeUp()
}

// Ready returns how many wardens wait for a command.
func (r *Reserve) Ready() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sift() {
		r.wakeUp()
	}
	return len(r.spare)
}

// sift removes wardens that have ended, and reports whether there were such wardens. The caller holds mu.
func (r *Reserve) sift() bool {
	before := len(r.spare)
	r.spare = slices.DeleteFunc(r.spare, func(s spareWarden) bool {
		if s.Alive() {
			return false
		}
		go s.Close()
		return true
	})
	died := len(r.spare) < before
	if died {
		r.tire()
	}
	return died
}

// tire makes the pause before the start of the next warden longer. The caller holds mu.
func (r *Reserve) tire() { r.rest = min(max(2*r.rest, calm), lookAfter) }

// Fill keeps wardens ready until ctx ends, and then ends the remaining wardens.
func (r *Reserve) Fill(ctx context.Context) {
	defer r.drop(0)
	for ctx.Err() == nil {
		wait := r.fill()
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
			continue
		case <-r.wake:
		}
		select { // a wake-up may mean that a warden was taken, whose command needs the processor
		case <-ctx.Done():
		case <-time.After(min(wait, calm)):
		}
	}
}

// fill starts one warden, if a warden is missing, and returns the time until the next call.
func (r *Reserve) fill() time.Duration {
	r.mu.Lock()
	died := r.sift()
	size, missing := r.size, r.size-len(r.spare)
	busy := calm - time.Since(r.taken)
	if missing == 0 {
		r.rest = 0
	}
	rest := r.rest
	r.mu.Unlock()
	switch {
	case missing < 0:
		r.drop(size)
		return lookAfter
	case missing == 0:
		return lookAfter
	case died:
		return rest
	case busy > 0:
		return busy
	}
	output := new(lateWriter)
	ready, err := Prepare(Spec{Warden: r.warden, Stdout: output, Stderr: output})
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil { // the caller of Run gets the reason
		r.tire()
		return r.rest
	}
	r.spare = append(r.spare, spareWarden{ready, output})
	return 10 * time.Millisecond
}

// drop ends ready wardens until their number is at most the argument keep.
func (r *Reserve) drop(keep int) {
	r.mu.Lock()
	left := slices.Clone(r.spare[min(keep, len(r.spare)):])
	r.spare = r.spare[:len(r.spare)-len(left)]
	r.mu.Unlock()
	for _, s := range left {
		s.Close()
	}
}

// Run runs a command like [Run], with the Reserve's program as warden. It uses a ready warden, if there is one, for a command that has
// no input and writes all its output to one writer, which is a pointer.
func (r *Reserve) Run(ctx context.Context, s Spec) (Result, error) {
	s.Warden = r.warden
	if s.Stdin != nil || s.Leave || s.Stdout != s.Stderr {
		return Run(ctx, s)
	}
	ready := r.take()
	if ready.output != nil {
		ready.output.set(s.Stdout)
	}
	return RunReady(ctx, ready.Ready, s)
}

// Try calls the function [Try] with the Reserve's program.
func (r *Reserve) Try(s Settings) error { return Try(r.warden, s) }

// take returns a ready warden, or the zero value if no warden is ready.
func (r *Reserve) take() spareWarden {
	defer r.wakeUp()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.taken = time.Now()
	r.sift()
	if len(r.spare) == 0 {
		return spareWarden{}
	}
	first := r.spare[0]
	r.spare = slices.Delete(r.spare, 0, 1)
	return first
}

func (r *Reserve) wakeUp() {
	select {
	case r.wake <- struct{}{}:
	default: // Fill will check the wardens anyway
	}
}

// lateWriter is a writer whose target is set later.
type lateWriter struct {
	mu sync.Mutex
	to io.Writer
}

func (w *lateWriter) set(to io.Writer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.to = to
}

// Write implements io.Writer. It drops output that arrives before the target is set.
func (w *lateWriter) Write(b []byte) (int, error) {
	w.mu.Lock()
	to := w.to
	w.mu.Unlock()
	if to == nil {
		return len(b), nil
	}
	return to.Write(b)
}

// ReadFrom implements io.ReaderFrom. Until the command prints something, ReadFrom uses little memory.
func (w *lateWriter) ReadFrom(r io.Reader) (int64, error) {
	first := make([]byte, 512)
	n, err := r.Read(first)
	if _, failed := w.Write(first[:n]); failed != nil {
		return int64(n), failed
	}
	if errors.Is(err, io.EOF) {
		return int64(n), nil
	}
	if err != nil {
		return int64(n), err
	}
	w.mu.Lock()
	to := w.to
	w.mu.Unlock()
	if to == nil {
		to = io.Discard
	}
	rest, err := io.Copy(to, r)
	return int64(n) + rest, err
}
