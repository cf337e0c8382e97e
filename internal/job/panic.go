package job

import (
	"bytes"
	"context"
	"fmt"
	"runtime/debug"
	"strings"
)

const (
	// maxStack bounds what of a panic's stack is kept, counted from where it happened.
	maxStack = 4 << 10
	// maxError bounds the text of a run's error in the history.
	maxError = 8 << 10
)

// panicError is a panic of a job's work.
type panicError struct {
	value any
	stack string
}

// Error implements error.
func (p *panicError) Error() string {
	return fmt.Sprintf("panic: %v\n%s", p.value, p.stack)
}

// call does the work and turns its panic into an error.
func call(ctx context.Context, work Func, run Run) (res Result, err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &panicError{value: value, stack: panicStack(debug.Stack())}
		}
	}()
	return work(ctx, run)
}

// panicStack cuts the frames of the recovery off, and what is too long.
func panicStack(stack []byte) string {
	if _, below, found := bytes.Cut(stack, []byte("\npanic(")); found {
		if _, frames, ok := bytes.Cut(below, []byte("\n\t")); ok {
			_, stack, _ = bytes.Cut(frames, []byte("\n"))
		}
	}
	return string(stack[:min(len(stack), maxStack)])
}

// clip shortens a text for the history, keeping it valid UTF-8.
func clip(text string) string {
	if len(text) > maxError {
		text = text[:maxError] + "…"
	}
	return strings.ToValidUTF8(text, "?")
}
