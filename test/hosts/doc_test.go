// Package hosts tests baton where it runs: the built package, installed in small
// hosts with a real systemd, over a network of their own.
//
//	make test-systemd                          # all of it, as root or by sudo
//	make test-systemd SYSTEMD_RUN=TestUpgrade  # one
//
// A site is a lab with a Redis, perhaps a PostgreSQL, and hosts that have the package.
package hosts

import (
	"testing"

	lab "baton/internal/testsupport/hosts"
)

func TestMain(m *testing.M) { lab.Main(m, printFigures) }
