package notify

import (
	"context"

	"baton/internal/notify/service"
)

// Target delivers events somewhere. Send returns soon after ctx ends. Its error contains no secret; if it matches [ErrRefused], another
// try is useless.
type Target interface {
	Send(ctx context.Context, e Event) error
}

// ErrRefused means that the target will never take the event.
var ErrRefused = service.ErrRefused
