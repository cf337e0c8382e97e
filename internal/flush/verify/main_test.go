package verify_test

import (
	"testing"

	"baton/internal/testsupport"
)

func TestMain(m *testing.M) { testsupport.Main(m) }
