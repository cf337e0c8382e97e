package notify

import (
	"context"
	"errors"
	"fmt"
)

// Target delivers events somewhere. Send returns soon after ctx ends. Its error has no
// secret in it; one that matches [ErrRefused] means that trying again is of no use.
type Target interface {
	Send(ctx context.Context, e Event) error
}

// ErrRefused is what a target answers that will never take an event.
var ErrRefused = errors.New("refused")

// Refused is an error that matches [ErrRefused].
func Refused(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrRefused, fmt.Sprintf(format, args...))
}
