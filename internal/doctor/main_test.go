package doctor

import (
	"testing"

	"baton/internal/testsupport"
)

func TestMain(m *testing.M) {
	testsupport.AtOnce(4)
	testsupport.Main(m)
}
