package linear

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"baton/internal/redisconn"
	"baton/internal/redislock/script"
	"baton/internal/testsupport"
	"baton/test/linear/wire"

	"github.com/gomodule/redigo/redis"
)

// These are the faults of a single Redis.
const (
	redisKill   kind = "SIGKILL of Redis"
	redisFreeze kind = "SIGSTOP of Redis"
	redisEmpty  kind = "SIGKILL of Redis and loss of its data"
	redisRewind kind = "SIGKILL of Redis and restart from an old copy"
	redisFlush  kind = "FLUSHALL"
)

// single is one Redis that keeps the data that it has acknowledged, unless the nemesis removes the data.
type single struct {
	format script.Format
	redis  *testsupport.Redis
	node   [nodes]*testsupport.Proxy
	files  string // the append-only files of Redis
	copy   string // an older copy of these files
}

func newSingle(f script.Format) func(*testing.T) ground {
	return func(t *testing.T) ground {
		t.Helper()
		return startSingle(t, f)
	}
}

func startSingle(t *testing.T, f script.Format) *single {
	t.Helper()
	g := &single{format: f, redis: testsupport.StartRedis(t, testsupport.RedisAOF()), copy: filepath.Join(t.TempDir(), "copy")}
	for i := range g.node {
		g.node[i] = g.redis.Proxy()
	}
	g.files = appendOnlyFiles(t, g.redis)
	if err := os.CopyFS(g.copy, os.DirFS(g.files)); err != nil {
		t.Fatal(err)
	}
	return g
}

// appendOnlyFiles returns the directory where a Redis keeps its data.
func appendOnlyFiles(t *testing.T, r *testsupport.Redis) string {
	t.Helper()
	dir, err := redis.Strings(r.Conn().Do("CONFIG", "GET", "dir"))
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir[1], "appendonlydir")
}

func (g *single) tell(node int, s *wire.Setup) {
	s.Redis = []string{g.redis.URLThrough(g.node[node])}
}

func (g *single) ways(node int, _ uint64) []*testsupport.Proxy { return g.node[node : node+1] }

func (g *single) margin() time.Duration { return clockRate }

func (g *single) stepDown(ctx context.Context) error {
	return stepDownBy(ctx, redisconn.Options{URL: g.redis.URL()}, g.format)
}

func (g *single) traits() []trait {
	return []trait{
		{redisKill, atStore, 4, 0, 0.5},
		{redisFreeze, atStore, 2, 0.25, 2},
		{redisEmpty, atStore, 4, 0, 0.5},
		{redisRewind, atStore, 3, 0, 0.5},
		{redisFlush, atStore, 2, 0, 0},
	}
}

func (g *single) begin(f fault) (target string, end func() error, err error) {
	d := g.redis.Daemon()
	switch f.kind {
	case redisFreeze:
		return "redis", d.Thaw, d.Freeze()
	case redisFlush:
		c, err := redis.Dial("tcp", g.redis.Addr(), redis.DialReadTimeout(time.Second))
		if err != nil {
			return "", nil, err
		}
		_, err = c.Do("FLUSHALL")
		return "redis", c.Close, err
	}
	return "redis", func() error {
		var err error
		switch f.kind {
		case redisEmpty:
			err = os.RemoveAll(g.files)
		case redisRewind:
			err = g.rewind()
		}
		return errors.Join(err, d.Restart())
	}, d.Kill()
}

// rewind replaces the data with the older copy, and keeps a copy of the present data for the next call.
func (g *single) rewind() error {
	newer := g.copy + ".new"
	if err := os.CopyFS(newer, os.DirFS(g.files)); err != nil {
		return fmt.Errorf("copy redis' files: %w", err)
	}
	return errors.Join(os.RemoveAll(g.files), os.CopyFS(g.files, os.DirFS(g.copy)), os.RemoveAll(g.copy), os.Rename(newer, g.copy))
}
