package notify

import (
	"context"

	"baton/internal/notify/service"
)

// Target delivers events to one receiver. Send returns soon after ctx ends. Its error contains no secret. If the error matches
// [ErrRefused], another attempt is useless.
type Target interface {
	Send(ctx context.Context, e Event) error
}

// ErrRefused means that the target will never accept the event.
var ErrRefused = service.ErrRefused
