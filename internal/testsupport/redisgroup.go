package testsupport

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"golang.org/x/sync/errgroup"

	"baton/internal/testsupport/ground"
)

// redisGroup is several servers that belong together. They are started side by side
// and share what RedisTLS makes.
type redisGroup struct {
	dir     *ground.Dir // nil unless something is shared
	members []*RedisDaemon
}

// share makes what the group's servers have in common, and returns opts with it.
func (g *redisGroup) share(dir string, opts []RedisOption) ([]RedisOption, error) {
	o := redisOptionsOf(opts)
	if o.tls == nil {
		return opts, nil
	}
	var err error
	if g.dir, err = newServerDir(dir, "tls"); err != nil {
		return nil, err
	}
	files, err := o.tls.in(g.dir.Path)
	if err != nil {
		return nil, err
	}
	return append(slices.Clip(opts), func(o *redisOptions) { o.tls.files = files }), nil
}

// add starts n more members at once and returns them.
func (g *redisGroup) add(n int, start func(i int) (*RedisDaemon, error)) ([]*RedisDaemon, error) {
	started := make([]*RedisDaemon, n)
	var work errgroup.Group
	for i := range n {
		work.Go(func() (err error) { started[i], err = start(i); return err })
	}
	err := work.Wait()
	for _, r := range started {
		if r != nil {
			g.members = append(g.members, r)
		}
	}
	return started, err
}

// Stop ends all servers for good and removes their directories.
func (g *redisGroup) Stop() error {
	var errs []error
	for _, r := range g.members {
		errs = append(errs, r.Stop())
	}
	if g.dir != nil {
		g.dir.Remove()
	}
	return errors.Join(errs...)
}

// fail stops what has been started before the error.
func (g *redisGroup) fail(err error) error { return errors.Join(err, g.Stop()) }

// each does something on all servers at once.
func each(servers []*RedisDaemon, do func(*RedisDaemon) error) error {
	var work errgroup.Group
	for _, r := range servers {
		work.Go(func() error {
			if err := do(r); err != nil {
				return fmt.Errorf("%s: %w", r.Addr(), err)
			}
			return nil
		})
	}
	return work.Wait()
}

func addresses(servers []*RedisDaemon) []string {
	addrs := make([]string, len(servers))
	for i, r := range servers {
		addrs[i] = r.Addr()
	}
	return addrs
}

// testGroup finds the *Redis of a test for a daemon of its group.
type testGroup struct {
	t  testing.TB
	of map[*RedisDaemon]*Redis
}

// newTestGroup calls end at the test's end.
func newTestGroup(t testing.TB, g *redisGroup, end func() error) testGroup {
	atEnd(t, end)
	tg := testGroup{t: t, of: map[*RedisDaemon]*Redis{}}
	for _, r := range g.members {
		tg.of[r] = &Redis{Server: Server{t: t, daemon: r.Daemon}, daemon: r}
	}
	return tg
}

// one is the *Redis of a daemon that was to be found.
func (g testGroup) one(r *RedisDaemon, err error) *Redis {
	g.t.Helper()
	g.check(err)
	return g.of[r]
}

func (g testGroup) all(servers []*RedisDaemon) []*Redis {
	rs := make([]*Redis, len(servers))
	for i, r := range servers {
		rs[i] = g.of[r]
	}
	return rs
}

func (g testGroup) check(err error) {
	g.t.Helper()
	if err != nil {
		g.t.Fatal(err)
	}
}

// daemonOf is nil for nil.
func daemonOf(r *Redis) *RedisDaemon {
	if r == nil {
		return nil
	}
	return r.daemon
}
