//go:build !linux

package command

import (
	"context"
	"errors"
)

var errLinux = errors.New("commands are run on Linux only")

// Run elsewhere answers an error: baton is run on Linux; this lets its code be
// worked on anywhere.
func Run(context.Context, Spec) (Result, error) { return Result{}, errLinux }
