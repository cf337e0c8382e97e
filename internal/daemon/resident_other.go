//go:build !linux

package daemon

// releaseStartUp does nothing on this system.
func releaseStartUp() error { return nil }
