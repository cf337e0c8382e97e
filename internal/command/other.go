//go:build !linux

package command

import (
	"context"
	"errors"
)

var errLinux = errors.New("commands are run on Linux only")

// Ready exists on systems other than Linux only so that baton's code compiles there.
type Ready struct{}

// Prepare returns an error on systems other than Linux, because baton runs only on Linux.
func Prepare(Spec) (*Ready, error) { return nil, errLinux }

// Alive is never called on systems other than Linux.
func (*Ready) Alive() bool { return false }

// Close is never called on systems other than Linux.
func (*Ready) Close() {}

func (*Ready) run(context.Context, Spec) (Result, error) { return Result{}, errLinux }

func (*Ready) left() bool { return false }

// Try returns an error on systems other than Linux, because baton runs only on Linux.
func Try([]string, Settings) error { return errLinux }
