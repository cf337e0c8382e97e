//go:build !linux

package daemon

// releaseStartUp does nothing here.
func releaseStartUp() error { return nil }
