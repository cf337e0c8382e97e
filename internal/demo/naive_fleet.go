package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/gomodule/redigo/redis"
)

const naiveCount = 2

// naiveFleet runs processes of the naive program beside the nodes, with the same traffic. When the leader of the nodes gets a fault, the
// leader of these processes gets the same fault.
type naiveFleet struct {
	server   *server
	database *database
	program  string
	environ  []string
	dir      string
	events   *eventLog

	mu        sync.Mutex
	processes map[string]*os.Process // running processes by name
}

func newNaiveFleet(ctx context.Context, o Options, dir string, s *server, d *database, log *eventLog) (*naiveFleet, error) {
	beside, err := d.beside(ctx, dir)
	if err != nil {
		return nil, err
	}
	return &naiveFleet{
		server: s, database: beside, program: o.Program, environ: nodeEnviron(o.Environ), dir: dir, events: log,
		processes: map[string]*os.Process{},
	}, nil
}

func (s *server) naiveLock() string { return s.prefix + ":naive:lock" }
func (s *server) naiveKey(article string) string {
	n, _ := strconv.Atoi(article) // the text was made from a number
	return s.prefix + ":naive:" + strconv.Itoa(n%shards)
}

func (s *server) naiveKeys() (keys []string) {
	for shard := range shards {
		keys = append(keys, s.naiveKey(strconv.Itoa(shard)))
	}
	return keys
}

// run keeps the processes running until ctx ends, and returns when all have ended.
func (f *naiveFleet) run(ctx context.Context) {
	l := newLauncher()
	defer l.close()
	var wg sync.WaitGroup
	defer wg.Wait()
	for i := range naiveCount {
		wg.Go(func() { f.supervise(ctx, l, fmt.Sprintf("naive-%d", i+1)) })
	}
}

// supervise restarts a process whenever it ends.
func (f *naiveFleet) supervise(ctx context.Context, l *launcher, name string) {
	config, err := json.Marshal(NaiveConfig{
		Name: name, Redis: f.server.nodes.URL, Lock: f.server.naiveLock(), Keys: f.server.naiveKeys(),
		Driver: f.database.driver, DSN: f.database.dsn,
	})
	file := filepath.Join(f.dir, name+".json")
	if err == nil {
		err = os.WriteFile(file, config, 0o600)
	}
	for ctx.Err() == nil && err == nil {
		var cmd *exec.Cmd
		if cmd, err = l.start([]string{f.program, "demo", "naive", file}, f.environ, filepath.Join(f.dir, name+".log")); err == nil {
			f.wait(ctx, name, cmd)
			pause(ctx, restartAfter)
		}
	}
	if err != nil {
		_ = os.WriteFile(filepath.Join(f.dir, name+".log"), []byte(err.Error()+"\n"), 0o600)
	}
}

// wait waits until the process has ended.
func (f *naiveFleet) wait(ctx context.Context, name string, cmd *exec.Cmd) {
	f.mu.Lock()
	f.processes[name] = cmd.Process
	f.mu.Unlock()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // ignored, because the process restarts in any case
	}()
	select {
	case <-ended:
	case <-ctx.Done():
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Process.Signal(syscall.SIGCONT)
		select {
		case <-ended:
		case <-time.After(stopTimeout):
			_ = cmd.Process.Kill()
			<-ended
		}
	}
	f.mu.Lock()
	delete(f.processes, name)
	f.mu.Unlock()
}

// fault sends a signal to the leader of the naive program. The leader of the nodes has got the same signal.
func (f *naiveFleet) fault(ctx context.Context, sig syscall.Signal) {
	ctx, cancel := context.WithTimeout(ctx, redisTimeout)
	defer cancel()
	c, err := f.server.dial(ctx)
	if err != nil {
		return
	}
	defer c.Close()
	holder, err := redis.String(redis.DoContext(c, ctx, "GET", f.server.naiveLock()))
	if err != nil {
		return // no process leads
	}
	name, _, _ := strings.Cut(holder, ":")
	f.mu.Lock()
	defer f.mu.Unlock()
	if p := f.processes[name]; p != nil && p.Signal(sig) == nil { // the process may have ended already
		f.events.note("%s, which holds the lock of SET NX EX, gets the same signal: %v", name, sig)
	}
}

// thaw lets all frozen processes continue.
func (f *naiveFleet) thaw() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range f.processes {
		_ = p.Signal(syscall.SIGCONT)
	}
}

// waiting returns the counts of the naive program that are still in Redis.
func (f *naiveFleet) waiting(ctx context.Context) (map[string]int64, error) {
	c, err := f.server.dial(ctx)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	all := map[string]int64{}
	for _, key := range f.server.naiveKeys() {
		counts, err := redis.Int64Map(redis.DoContext(c, ctx, "HGETALL", key))
		if err != nil {
			return nil, err
		}
		maps.Copy(all, counts) // each article is in only one of the keys
	}
	return all, nil
}

// drained waits until Redis contains no counts of the naive program, or until ctx ends.
func (f *naiveFleet) drained(ctx context.Context) error {
	for {
		n, err := f.waiting(ctx)
		if err != nil || len(n) == 0 {
			return err
		}
		if !pause(ctx, 50*time.Millisecond) {
			return errors.New("the naive program did not flush its last counts from Redis in time")
		}
	}
}
