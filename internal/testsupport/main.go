package testsupport

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync"
	"testing"

	"baton/internal/testsupport/child"
	"baton/internal/testsupport/ground"
)

// shared holds the servers that the tests of one process share. It is a package variable, because a test binary has many test functions and
// no other place for a shared value.
var shared = &sharedServers{redis: redisLeases{servers: map[string][]*RedisDaemon{}}}

type sharedServers struct {
	pg, maria lazyServer
	redis     redisLeases

	mu   sync.Mutex
	dirs []*ground.Dir
}

// lazyServer is a server that starts when the first test asks for it.
type lazyServer struct {
	once sync.Once
	d    *SQLDaemon
	err  error
}

func (s *sharedServers) postgres(t testing.TB) *SQLDaemon { return s.pg.get(t, RunPostgres) }

func (s *sharedServers) mariadb(t testing.TB) *SQLDaemon { return s.maria.get(t, RunMariaDB) }

func (l *lazyServer) get(t testing.TB, start func(dir string) (*SQLDaemon, error)) *SQLDaemon {
	t.Helper()
	l.once.Do(func() { l.d, l.err = start("") })
	if l.err != nil {
		t.Fatalf("start the database server that the tests share: %v", l.err)
	}
	return l.d
}

// SharedDir makes a directory for files that all tests of one process share, such as a program that they run. Main removes the directory;
// without Main a later process removes it.
func SharedDir(name string) (string, error) {
	d, err := ground.New("", name+"-")
	if err != nil {
		return "", err
	}
	shared.mu.Lock()
	defer shared.mu.Unlock()
	shared.dirs = append(shared.dirs, d)
	return d.Path, nil
}

// AtOnce lets n or more parallel tests of a package run at the same time, unless the command line sets the number. It is for tests that
// mostly wait for leases or servers, so that the processors are idle. Call it from TestMain, before Main.
func AtOnce(n int) {
	if err := flag.Set("test.parallel", strconv.Itoa(max(n, runtime.GOMAXPROCS(0)))); err != nil {
		panic(err) // the flag belongs to package testing
	}
}

// Main runs a package's tests and stops the servers that they shared. Call it from TestMain. Without Main the servers also end with the
// process, but their directories remain until the next process removes them.
//
// Main restores the default handling of signals for the programs that the tests start, even if this process runs under nohup.
//
// Main makes the garbage collector run less often, because a collection is expensive under the race detector. If the environment sets GOGC,
// Main does not change it. Programs that the tests start are not affected.
//
// After the tests, Main calls the functions in ends, which stop servers that the package itself has started.
func Main(m *testing.M, ends ...func() error) {
	child.InheritNoIgnoredSignals()
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
	code := m.Run()
	for _, l := range []*lazyServer{&shared.pg, &shared.maria} {
		if l.d == nil {
			continue
		}
		if err := l.d.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "testsupport:", err)
			code = max(code, 1)
		}
	}
	for _, end := range append(ends, shared.redis.stop) {
		if err := end(); err != nil {
			fmt.Fprintln(os.Stderr, "testsupport:", err)
			code = max(code, 1)
		}
	}
	for _, d := range shared.dirs {
		d.Remove()
	}
	os.Exit(code)
}
