// Package clients runs programs in each language that clients/ has a file for, against a real Redis
// and a real flush.
package clients

import (
	"testing"

	"baton/internal/testsupport"
)

func TestMain(m *testing.M) { testsupport.Main(m) }
