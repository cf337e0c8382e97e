// Package docs runs what the documentation shows.
package docs

import (
	"testing"

	"baton/internal/testsupport"
)

func TestMain(m *testing.M) { testsupport.Main(m) }
