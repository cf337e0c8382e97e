// Package clients runs programs in each language for which clients/ has a file, with a real Redis and a real flush.
package clients

import (
	"testing"

	"baton/internal/testsupport"
)

func TestMain(m *testing.M) { testsupport.Main(m) }
