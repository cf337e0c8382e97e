package job

import (
	"bytes"
	"context"
	"fmt"
	"runtime/debug"
	"strings"
)

const (
	// maxStack is the number of bytes that are kept of a panic's stack, from the panic on.
	maxStack = 4 << 10
	// maxError is the maximum length in bytes of a run's error in the history.
	maxError = 8 << 10
)

// panicError is the error of work that has panicked.
type panicError struct {
	value any
	stack string
}

// Error implements error.
func (p *panicError) Error() string {
	return fmt.Sprintf("panic: %v\n%s", p.value, p.stack)
}

// goneError is the error of work that called runtime.Goexit.
type goneError struct{ stack string }

// Error implements error.
func (g *goneError) Error() string {
	return "the work has ended its goroutine (runtime.Goexit)\n" + g.stack
}

// call does the work and turns a panic into an error. The work has its own goroutine, because runtime.Goexit must not end the goroutine
// of the run.
func call(ctx context.Context, work Func, run Run) (Result, error) {
	var (
		res Result
		err error
	)
	done := make(chan struct{})
	go func() {
		defer close(done)
		returned := false
		defer func() {
			switch value := recover(); {
			case value != nil:
				err = &panicError{value: value, stack: panicStack(debug.Stack())}
			case !returned:
				err = &goneError{stack: clipStack(debug.Stack())}
			}
		}()
		res, err = work(ctx, run)
		returned = true
	}()
	<-done
	return res, err
}

// panicStack removes the frames of the recovery and shortens the stack.
func panicStack(stack []byte) string {
	if _, below, found := bytes.Cut(stack, []byte("\npanic(")); found {
		if _, frames, ok := bytes.Cut(below, []byte("\n\t")); ok {
			_, stack, _ = bytes.Cut(frames, []byte("\n"))
		}
	}
	return clipStack(stack)
}

func clipStack(stack []byte) string { return string(stack[:min(len(stack), maxStack)]) }

// clip shortens a text for the history and keeps it valid UTF-8.
func clip(text string) string {
	if len(text) > maxError {
		text = text[:maxError] + "…"
	}
	return strings.ToValidUTF8(text, "?")
}
