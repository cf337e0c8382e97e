//go:build !linux

package orphans

import "context"

// Adopt does nothing on systems other than Linux, because baton runs only on Linux.
func Adopt(context.Context) {}
