//go:build !linux

package command

import (
	"context"
	"errors"
)

var errLinux = errors.New("commands are run on Linux only")

// Ready elsewhere is never made; it lets baton's code be worked on anywhere.
type Ready struct{}

// Prepare elsewhere answers an error: baton is run on Linux.
func Prepare(Spec) (*Ready, error) { return nil, errLinux }

// Alive elsewhere is not called.
func (*Ready) Alive() bool { return false }

// Close elsewhere is not called.
func (*Ready) Close() {}

func (*Ready) run(context.Context, Spec) (Result, error) { return Result{}, errLinux }

func (*Ready) left() bool { return false }

// Try elsewhere answers an error: baton is run on Linux.
func Try([]string, Settings) error { return errLinux }
