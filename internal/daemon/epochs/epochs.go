// Package epochs remembers on this host the highest epoch of each lock that the node has heard of, and the lease of its term.
//
// A Redis that has lost its data looks like a new Redis. With this memory a node recognises the loss: the next epoch is higher than the
// lost epoch, and no node leads before the lease of a forgotten leader must have ended.
//
//	Memory  the known term of one lock; Heard raises it, and Known returns it
//	File    epoch.json in the state directory, which all locks of the process share
//	Term    an epoch and its lease
//
// The invariants:
//
//   - An epoch only rises. An epoch that cannot have followed the last epoch is ignored, so that no wrong epoch is kept after its repair.
//   - Heard never waits for the disk. Write updates the file later, and replaces it as a whole.
//
// Failures: a file that cannot be read or written is logged once, and the node continues without the file. Then Redis and the fences of
// the databases still have the epoch. Only the loss of Redis, fences and file together would go unnoticed.
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

// UnmarshalJSON also reads the form of earlier versions, which wrote the epoch as a number alone.
func (l *Term) UnmarshalJSON(text []byte) error {
	if json.Unmarshal(text, &l.Epoch) == nil {
		return nil
	}
	type plain Term
	return json.Unmarshal(text, (*plain)(l))
}

// Lease returns the lease of the term. 0 means unknown.
func (l Term) Lease() time.Duration { return time.Duration(l.LeaseMS) * time.Millisecond }

// Memory remembers, in a file of this host, the highest epoch of the lock that this node has heard of, and the lease of its term.
// Memory distinguishes a Redis that has lost all data from a new Redis: after a loss no node leads before the lease of a forgotten
// leader must have ended.
type Memory struct {
	path    string // "" without a state directory: then it only counts
	lockKey string
	log     *zap.Logger
	changed chan struct{} // receives a value when there is a change to write
	file    *File

	mu      sync.Mutex
	highest Term
	written Term
	warned  bool
}

// absurd is an epoch that no election reaches. A file with such an epoch is ignored.
const absurd = 1 << 52

var errNoEpochs = errors.New("the file has no epochs")

// Path returns the path of epoch.json in the first of systemd's state directories, or "" if there is no such directory.
func Path(getenv func(string) (string, bool)) string {
	dirs, _ := getenv("STATE_DIRECTORY")
	dir, _, _ := strings.Cut(dirs, ":") // a unit may have several directories
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, "epoch.json")
}

// Open reads the file of an earlier process. It logs an error if the file cannot be read, and continues as if there were no file.
func Open(path, lockKey string, file *File, log *zap.Logger) *Memory {
	e := &Memory{path: path, lockKey: lockKey, log: log, changed: make(chan struct{}, 1), file: file}
	if path == "" {
		return e
	}
	known, err := readEpochs(path)
	if err != nil {
		log.Warn("cannot read the epoch of an earlier process: starting without it", zap.Error(err))
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
	if err != nil || known == nil { // nil means JSON's null
		return map[string]Term{}, fmt.Errorf("read %s: %w", path, cmp.Or(err, errNoEpochs))
	}
	maps.DeleteFunc(known, func(_ string, l Term) bool { return l.Epoch < 1 || l.Epoch >= absurd || l.LeaseMS < 0 })
	return known, nil
}

// Changed returns a channel that receives a value when there is a change to write.
func (e *Memory) Changed() <-chan struct{} { return e.changed }

// Heard records an epoch, and the lease of its term. A lease of 0 is unknown, and may be the lease of the previous term. Heard never
// waits for the disk. If the epoch cannot have followed the previous epoch, Heard records only that there was a term, because a wrong
// epoch must not be kept after its repair.
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

// Known returns the highest epoch that this node has heard of, and the lease of its term.
func (e *Memory) Known() Term {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.highest
}

// Write updates the file. A failure is logged once, and does not stop the node.
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
		e.log.Warn("cannot store the epoch on this host; the stored epoch is only needed if redis and the databases lose their epochs",
			zap.Error(fmt.Errorf("write %s: %w", e.path, err)))
	}
}

// File is the file that all elections of a process write. Changes that several elections make at the same time are written together.
type File struct {
	turn sync.Mutex // held while the file is written
	err  error      // the error of the last writing

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
		return f.err // another call has written the term together with its own term
	}
	if f.err = merge(path, due); f.err != nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		maps.Copy(due, f.due)
		f.due = due // the next call tries again
	}
	return f.err
}

// merge writes terms into the file, and keeps the terms of other elections and other processes.
func merge(path string, due map[string]Term) error {
	known, err := readEpochs(path)
	if err != nil {
		known = map[string]Term{} // the unreadable file is replaced
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

// AskWithin is the maximum time that a start waits for answers of databases.
const AskWithin = time.Second

// Last returns the last term of the lock that this host knows, from its own file or otherwise from the fences in the databases that answer
// within AskWithin. If no term is known, it returns the zero Term.
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
