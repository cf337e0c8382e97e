package notify

import (
	"context"

	"baton/internal/notify/service"
)

// Target delivers events somewhere. Send returns soon after ctx ends. Its error has no
// secret in it; one that matches [ErrRefused] means that trying again is of no use.
type Target interface {
	Send(ctx context.Context, e Event) error
}

// ErrRefused is what a target answers that will never take an event.
var ErrRefused = service.ErrRefused
