package testsupport

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"golang.org/x/sync/errgroup"

	"baton/internal/testsupport/ground"
)

// redisGroup is a group of servers that belong together. They start in parallel and share the certificates of the option RedisTLS.
type redisGroup struct {
	dir     *ground.Dir // nil unless the servers share files
	members []*RedisDaemon
}

// share makes the certificates that the group's servers share. It returns opts with an option that uses these certificates.
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

// add starts n more members in parallel and returns them.
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

// fail stops the servers that have started before the error, and returns the error.
func (g *redisGroup) fail(err error) error { return errors.Join(err, g.Stop()) }

// each calls the function do for all servers in parallel.
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

// testGroup maps the daemons of a group to the *Redis values of a test.
type testGroup struct {
	t  testing.TB
	of map[*RedisDaemon]*Redis
}

// newTestGroup makes a testGroup, and calls the function end when the test ends.
func newTestGroup(t testing.TB, g *redisGroup, end func() error) testGroup {
	atEnd(t, end)
	tg := testGroup{t: t, of: map[*RedisDaemon]*Redis{}}
	for _, r := range g.members {
		tg.of[r] = &Redis{Server: Server{t: t, daemon: r.Daemon}, daemon: r}
	}
	return tg
}

// one returns the *Redis of the daemon r. It fails the test if the argument err, which comes from the search for r, is not nil.
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

// daemonOf returns the daemon of r, or nil if r is nil.
func daemonOf(r *Redis) *RedisDaemon {
	if r == nil {
		return nil
	}
	return r.daemon
}
