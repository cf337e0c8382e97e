package redisconn

import (
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/gomodule/redigo/redis"

	"baton/internal/testsupport"
)

// Hundreds of locks that were won at the same moment all have something to read.
func TestManyWhoWantAConnectionAtOnceMakeFew(t *testing.T) {
	r := testsupport.StartRedis(t)
	s := openStore(t, r.URL())
	const many = 300
	var wg sync.WaitGroup
	for range many {
		wg.Go(func() {
			for range 3 {
				c, err := s.Conn(t.Context(), "k")
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := redis.DoContext(c, t.Context(), "PING"); err != nil {
					t.Error(err)
				}
				_ = c.Close()
			}
		})
	}
	wg.Wait()
	info, err := redis.String(r.Conn().Do("INFO", "stats"))
	_, rest, _ := strings.Cut(info, "total_connections_received:")
	text, _, _ := strings.Cut(rest, "\r")
	if n, bad := strconv.Atoi(text); err != nil || bad != nil || n > many/2 {
		t.Errorf("%d who asked three times made %d connections", many, n)
	}
}
