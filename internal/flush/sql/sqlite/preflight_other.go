//go:build !linux

package sqlite

func fileSystem(string) (magic int64, ok bool) { return 0, false }

func writable(string) error { return nil }
