package daemon

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

	"github.com/google/renameio/v2"
	"go.uber.org/zap"
)

// epochs remembers, in a file of this host, the highest epoch of the lock that this
// node has heard of. A Redis that has lost everything is told from a new one by it:
// then nobody leads before the lease of a forgotten leader must have ended.
type epochs struct {
	path    string // "" without a state directory: then it only counts
	lockKey string
	log     *zap.Logger
	changed chan struct{} // there is something to write
	file    *sync.Mutex   // held while it is written

	mu      sync.Mutex
	highest int64
	written int64
	warned  bool
}

// absurd is far beyond any epoch in milliseconds, and near the end of what can be
// counted: one that somebody has written into Redis by hand must not outlive its repair.
const absurd = 1 << 52

var errNoEpochs = errors.New("there are no epochs in it")

// statePath is epoch.json in the first of systemd's state directories; "" without one.
func statePath(getenv func(string) (string, bool)) string {
	dirs, _ := getenv("STATE_DIRECTORY")
	dir, _, _ := strings.Cut(dirs, ":") // a unit may have several
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, "epoch.json")
}

// openEpochs reads what an earlier process has written. A file that cannot be read
// is as good as none, and is told.
func openEpochs(path, lockKey string, log *zap.Logger) *epochs {
	e := &epochs{path: path, lockKey: lockKey, log: log, changed: make(chan struct{}, 1), file: &sync.Mutex{}}
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

// readEpochs reads the highest epoch of every lock key; no file is no epoch.
func readEpochs(path string) (map[string]int64, error) {
	known := map[string]int64{}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return known, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &known)
	}
	if err != nil || known == nil { // nil is JSON's null
		return map[string]int64{}, fmt.Errorf("read %s: %w", path, cmp.Or(err, errNoEpochs))
	}
	maps.DeleteFunc(known, func(_ string, epoch int64) bool { return epoch < 1 || epoch >= absurd })
	return known, nil
}

// heard takes note of an epoch. It never waits for the disk.
func (e *epochs) heard(epoch int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if epoch <= e.highest || epoch >= absurd {
		return
	}
	e.highest = epoch
	select {
	case e.changed <- struct{}{}:
	default:
	}
}

func (e *epochs) known() int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.highest
}

// write brings the file up to date. A failure is told once: the node goes on.
func (e *epochs) write() {
	e.mu.Lock()
	highest, due := e.highest, e.path != "" && e.highest > e.written
	e.mu.Unlock()
	if !due {
		return
	}
	e.file.Lock()
	defer e.file.Unlock()
	known, err := readEpochs(e.path) // of other elections, and other processes
	if err != nil {
		known = map[string]int64{} // it is replaced
	}
	known[e.lockKey] = max(known[e.lockKey], highest)
	text, err := json.Marshal(known)
	if err == nil {
		err = renameio.WriteFile(e.path, append(text, '\n'), 0o600)
	}
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

// askWithin bounds the time that a start may spend on asking databases.
const askWithin = time.Second

// floor is the highest epoch of the lock that this host knows: by its own file, else
// by the fences in the databases that answer at once. 0: of none.
func (e *epochs) floor(ctx context.Context, c config.Config, dbs databases) int64 {
	if known := e.known(); known > 0 {
		return known
	}
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	for name, epoch := range fences(ctx, e.log, dbs, jobsByDatabase(c)) {
		e.log.Debug("a database knows an epoch", zap.String("database", name), zap.Int64("epoch", epoch))
		e.heard(epoch)
	}
	return e.known()
}

// jobsByDatabase are the names of the jobs that write to each database.
func jobsByDatabase(c config.Config) map[string][]string {
	jobs := map[string][]string{}
	for _, j := range c.Jobs {
		jobs[j.Flush.To.Database] = append(jobs[j.Flush.To.Database], j.Name)
	}
	return jobs
}

// fences asks databases for the highest epoch that some jobs' fences have recorded.
// One that does not answer before ctx ends, or has no fences yet, is left out.
func fences(ctx context.Context, log *zap.Logger, dbs databases, jobs map[string][]string) map[string]int64 {
	type answer struct {
		name  string
		epoch int64
		err   error
	}
	answers := make(chan answer, len(dbs)) // room for all: nobody may listen any more
	asked := 0
	for name, db := range dbs {
		if len(jobs[name]) == 0 {
			continue
		}
		asked++
		go func() {
			epoch, err := db.HighestEpoch(ctx, jobs[name])
			answers <- answer{name, epoch, err}
		}()
	}
	found := map[string]int64{}
	for range asked {
		select {
		case <-ctx.Done():
			return found
		case a := <-answers:
			if a.err != nil {
				log.Debug("a database does not tell of epochs", zap.String("database", a.name), zap.Error(a.err))
			} else if a.epoch > 0 {
				found[a.name] = a.epoch
			}
		}
	}
	return found
}
