package redislock

import (
	"testing"

	"baton/internal/testsupport"
)

func TestMain(m *testing.M) {
	testsupport.AtOnce(6)
	testsupport.Main(m)
}
