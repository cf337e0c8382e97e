// Package epochs remembers on this host the highest epochs of locks.
package epochs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"baton/internal/config"
	"baton/internal/daemon/site"
	"baton/internal/redislock"

	"github.com/google/renameio/v2"
	"go.uber.org/zap"
)

// Term is the newest known term of an election.
type Term struct {
	Epoch   int64 `json:"epoch"`
	LeaseMS int64 `json:"lease_ms,omitempty"` // 0: unknown
}

// UnmarshalJSON also reads the bare epoch that earlier versions wrote.
func (l *Term) UnmarshalJSON(text []byte) error {
	if json.Unmarshal(text, &l.Epoch) == nil {
		return nil
	}
	type plain Term
	return json.Unmarshal(text, (*plain)(l))
}

// Lease is the lease of the term; 0: unknown.
func (l Term) Lease() time.Duration { return time.Duration(l.LeaseMS) * time.Millisecond }

// Memory remembers, in a file of this host, the highest epoch of the lock that this
// node has heard of, and the lease of its term. A Redis that has lost everything is distinguished
// from a new one by it: then no node leads before the lease of a forgotten leader must
// have ended.
type Memory struct {
	path    string // "" without a state directory: then it only counts
	lockKey string
	log     *zap.Logger
	changed chan struct{} // there is something to write
	file    *File

	mu      sync.Mutex
	highest Term
	written Term
	warned  bool
}

// absurd is an epoch that no election reaches. A file with such an epoch is not believed.
const absurd = 1 << 52

var errNoEpochs = errors.New("there are no epochs in it")

// Path is epoch.json in the first of systemd's state directories; "" without one.
func Path(getenv func(string) (string, bool)) string {
	dirs, _ := getenv("STATE_DIRECTORY")
	dir, _, _ := strings.Cut(dirs, ":") // a unit may have several
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, "epoch.json")
}

// Open reads what an earlier process has written. A file that cannot be read
// is as good as none, and is logged.
func Open(path, lockKey string, file *File, log *zap.Logger) *Memory {
	e := &Memory{path: path, lockKey: lockKey, log: log, changed: make(chan struct{}, 1), file: file}
	if path == "" {
		return e
	}
	known, err := readEpochs(path)
	if err != nil {
		log.Warn("starting without the epoch that this node had known", zap.Error(err))
	}
	e.highest = known[lockKey]
	e.written = e.highest
	return e
}

// readEpochs reads the known term of every lock key. A missing file counts as empty.
func readEpochs(path string) (map[string]Term, error) {
	known := map[string]Term{}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return known, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &known)
	}
	if err != nil || known == nil { // nil is JSON's null
		return map[string]Term{}, fmt.Errorf("read %s: %w", path, cmp.Or(err, errNoEpochs))
	}
	maps.DeleteFunc(known, func(_ string, l Term) bool { return l.Epoch < 1 || l.Epoch >= absurd || l.LeaseMS < 0 })
	return known, nil
}

// Changed has a value when there is something to write.
func (e *Memory) Changed() <-chan struct{} { return e.changed }

// Heard takes note of an epoch, and of the lease of its term; 0: that is unknown, and may
// be the one before. It never waits for the disk. Of an epoch that cannot have followed from
// the one before it remembers only that there was a term: it must not outlive its repair.
func (e *Memory) Heard(epoch int64, lease time.Duration) {
	if before := e.Known().Epoch; !redislock.Plausible(epoch, before, time.Now().UnixMilli()) {
		epoch = max(before, 1)
	}
	e.note(epoch, lease)
}

func (e *Memory) note(epoch int64, lease time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	before := e.highest
	if epoch >= before.Epoch {
		e.highest = Term{epoch, cmp.Or(lease.Milliseconds(), before.LeaseMS)}
	}
	if e.highest == before {
		return
	}
	select {
	case e.changed <- struct{}{}:
	default:
	}
}

// Known is the highest epoch that this node has heard of, and the lease of its term.
func (e *Memory) Known() Term {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.highest
}

// Write brings the file up to date. A failure is logged once: the node goes on.
func (e *Memory) Write() {
	e.mu.Lock()
	highest, due := e.highest, e.path != "" && e.highest != e.written
	e.mu.Unlock()
	if !due {
		return
	}
	err := e.file.write(e.path, e.lockKey, highest)
	e.mu.Lock()
	defer e.mu.Unlock()
	if err == nil {
		e.written = highest
		return
	}
	if !e.warned {
		e.warned = true
		e.log.Warn("the epoch is not remembered on this host; it only matters if redis and the databases lose theirs",
			zap.Error(fmt.Errorf("write %s: %w", e.path, err)))
	}
}

// File is the file that all elections of a process write. What several have to write at
// the same time is written once.
type File struct {
	turn sync.Mutex // held while it is written
	err  error      // of the last writing

	mu  sync.Mutex
	due map[string]Term
}

func (f *File) write(path, lockKey string, last Term) error {
	f.mu.Lock()
	if f.due == nil {
		f.due = map[string]Term{}
	}
	f.due[lockKey] = last
	f.mu.Unlock()
	f.turn.Lock()
	defer f.turn.Unlock()
	f.mu.Lock()
	due := f.due
	f.due = nil
	f.mu.Unlock()
	if len(due) == 0 {
		return f.err // another one has written it with its own
	}
	if f.err = merge(path, due); f.err != nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		maps.Copy(due, f.due)
		f.due = due // the next one tries again
	}
	return f.err
}

// merge writes terms into the file, beside those of other elections and other processes.
func merge(path string, due map[string]Term) error {
	known, err := readEpochs(path)
	if err != nil {
		known = map[string]Term{} // it is replaced
	}
	for lockKey, last := range due {
		if known[lockKey].Epoch <= last.Epoch {
			known[lockKey] = last
		}
	}
	text, err := json.Marshal(known)
	if err != nil {
		return err
	}
	return renameio.WriteFile(path, append(text, '\n'), 0o600)
}

// AskWithin bounds the time that a start may spend on asking databases.
const AskWithin = time.Second

// Last is the last term of the lock that this host knows: by its own file, else by the
// fences in the databases that answer at once. The zero one: of none.
func (e *Memory) Last(ctx context.Context, c config.Config, dbs site.Databases) Term {
	if known := e.Known(); known.Epoch > 0 && known.LeaseMS > 0 {
		return known
	}
	ctx, cancel := context.WithTimeout(ctx, AskWithin)
	defer cancel()
	found := site.HighestFences(ctx, dbs, site.JobsByDatabase(c), func(database string, err error) {
		e.log.Debug("a database does not report its epochs", zap.String("database", database), zap.Error(err))
	})
	own := e.Known().Epoch
	for name, fence := range found {
		vouched := own
		for other, f := range found {
			if other != name {
				vouched = max(vouched, f.Epoch)
			}
		}
		if !redislock.Plausible(fence.Epoch, vouched, time.Now().UnixMilli()) {
			e.log.Error("the epoch of a fence is more than 30 days ahead of this host's clock, and is ignored; see baton fence list",
				zap.String("database", name), zap.String("job", fence.Job), zap.Int64("epoch", fence.Epoch))
			e.note(max(own, 1), fence.Lease) // there was a term all the same
			continue
		}
		e.log.Debug("a database knows an epoch", zap.String("database", name), zap.Int64("epoch", fence.Epoch))
		e.note(fence.Epoch, fence.Lease)
	}
	return e.Known()
}
