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

// shared holds the servers that the tests of one process share. It is a variable
// of the package because a test binary has one process and many entry points.
var shared = &sharedServers{redis: redisLeases{servers: map[string][]*RedisDaemon{}}}

type sharedServers struct {
	pg, maria lazyServer
	redis     redisLeases

	mu   sync.Mutex
	dirs []*ground.Dir
}

// lazyServer is started by the first test that asks for it.
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

// SharedDir makes a directory for what all tests of one process share, such as a
// program that they run. Main removes it; without Main a later process does.
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

// AtOnce has at least n parallel tests of a package run at a time, unless the command
// line says otherwise: for tests that mostly wait, for leases to end or for servers,
// and leave the processors idle meanwhile. Call it from TestMain, before Main.
func AtOnce(n int) {
	if err := flag.Set("test.parallel", strconv.Itoa(max(n, runtime.GOMAXPROCS(0)))); err != nil {
		panic(err) // the flag belongs to package testing
	}
}

// Main runs a package's tests and stops the servers they shared. Call it from
// TestMain. Without it the servers die with the process just the same; only
// their directories stay behind for the next process to remove.
//
// The programs that the tests start have the usual dispositions of signals, also under nohup.
//
// It has garbage collected less often, unless the environment says how often: the race
// detector makes that dear. Programs that the tests run are as they always are.
//
// ends stop what the package has started beside.
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
