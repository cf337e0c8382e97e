package daemon

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"baton/internal/config"
	"baton/internal/daemon/site"
	"baton/internal/flush/sql"
	"baton/internal/operate"
	"baton/internal/redisconn"
)

// Errors of the commands for dead letters, matched by errors.Is.
var (
	// ErrNoLetter: there is no such dead letter, or not any more.
	ErrNoLetter = sql.ErrNoLetter
	// errManyLetters: an id is the beginning of several.
	errManyLetters = sql.ErrManyLetters
	// ErrDeadUsage: what was asked for cannot be done in this configuration.
	ErrDeadUsage = errors.New("cannot be done")
)

// DeadLetter is one record that did not fit.
type DeadLetter struct {
	DeadKey
	BatchID string     `json:"batch_id"`
	At      time.Time  `json:"at"` // by the database's clock
	Error   string     `json:"error"`
	Record  RecordText `json:"record"`
}

// DeadKey says which dead letter.
type DeadKey = operate.LetterKey

// RecordText is a record as its dead letter keeps it: a JSON object, or the beginning
// of one.
type RecordText string

// MarshalJSON is the object itself.
func (r RecordText) MarshalJSON() ([]byte, error) {
	if json.Valid([]byte(r)) {
		return []byte(r), nil
	}
	return json.Marshal(string(r))
}

// UnmarshalJSON is the inverse of MarshalJSON.
func (r *RecordText) UnmarshalJSON(text []byte) error {
	if len(text) > 0 && text[0] == '"' {
		return json.Unmarshal(text, (*string)(r))
	}
	var b bytes.Buffer
	err := json.Compact(&b, text)
	*r = RecordText(b.String())
	return err
}

// DeadFilter picks dead letters: those of which everything that is set here is true.
type DeadFilter struct {
	Job      string
	Database string        // a name under databases; "" for the job's, or else all
	Within   time.Duration // put aside at most so long ago
	Before   time.Duration // put aside longer ago than that
	Text     string        // stands in the record or in the reason
}

func (f DeadFilter) inside() sql.LetterFilter {
	return sql.LetterFilter{Job: f.Job, Within: f.Within, Before: f.Before, Text: f.Text}
}

// Dead is all dead letters of a configuration's databases, for one command. It needs
// neither a leader nor, but to replay, Redis.
type Dead struct {
	config config.Config
	dbs    site.Databases
	redis  *redisconn.Store
	jobs   map[string]*replayer // those that something was replayed of
}

// OpenDead prepares to look at dead letters; it connects when it is asked something.
func OpenDead(c config.Config) (*Dead, error) {
	redis, err := site.OpenRedis(c)
	if err != nil {
		return nil, err
	}
	dbs, err := site.OpenDatabases(c)
	if err != nil {
		return nil, errors.Join(err, redis.Close())
	}
	return &Dead{config: c, dbs: dbs, redis: redis, jobs: map[string]*replayer{}}, nil
}

// Close drops the connections.
func (d *Dead) Close() error { return errors.Join(d.dbs.Close(), d.redis.Close()) }

// Configured reports whether the configuration has a job of that name.
func (d *Dead) Configured(job string) bool {
	_, ok := d.job(job)
	return ok
}

func (d *Dead) job(name string) (config.Job, bool) {
	for _, j := range d.config.Jobs {
		if j.Name == name {
			return j, true
		}
	}
	return config.Job{}, false
}

// where names the databases that a filter may find something in.
func (d *Dead) where(f DeadFilter) ([]string, error) {
	all := slices.Sorted(maps.Keys(d.dbs))
	j, configured := d.job(f.Job)
	switch {
	case len(all) == 0:
		return nil, fmt.Errorf("%w: the configuration has no databases, and dead letters are in databases", ErrDeadUsage)
	case f.Database != "" && d.dbs[f.Database] == nil:
		return nil, fmt.Errorf("%w: there is no database %q in the configuration: it has %v", ErrDeadUsage, f.Database, all)
	case f.Database != "":
		return []string{f.Database}, nil
	case f.Job == "" || len(all) == 1:
		return all, nil
	case configured && !j.IsCommand():
		return []string{j.Flush.To.Database}, nil
	}
	return nil, fmt.Errorf("%w: job %q is not in the configuration: say with --database where its dead letters are, one of %v", ErrDeadUsage, f.Job, all)
}

// List finds dead letters, the newest first, at most n. Their records are cut to so
// many characters; 0: they are whole. What one database answers is there also if
// another one fails.
func (d *Dead) List(ctx context.Context, f DeadFilter, n, cut int) ([]DeadLetter, error) {
	names, err := d.where(f)
	if err != nil {
		return nil, err
	}
	letters := []DeadLetter{}
	var failed []error
	for _, name := range names {
		found, err := d.dbs[name].Letters(ctx, f.inside(), n, cut)
		failed = append(failed, err)
		for _, l := range found {
			letters = append(letters, letterIn(name, l))
		}
	}
	slices.SortStableFunc(letters, func(a, b DeadLetter) int { return b.At.Compare(a.At) })
	return letters[:min(n, len(letters))], errors.Join(failed...)
}

func letterIn(database string, l sql.Letter) DeadLetter {
	return DeadLetter{
		DeadKey: DeadKey{ID: l.ID, Job: l.Job, Database: database},
		BatchID: l.BatchID, At: l.At, Error: l.Error, Record: RecordText(l.Record),
	}
}

// Find is the one dead letter whose id is, or begins with, id.
func (d *Dead) Find(ctx context.Context, id, database string) (DeadLetter, error) {
	names, err := d.where(DeadFilter{Database: database})
	if err != nil {
		return DeadLetter{}, err
	}
	var found []DeadLetter
	var failed []error
	for _, name := range names {
		l, err := d.dbs[name].Letter(ctx, id)
		switch {
		case err == nil:
			found = append(found, letterIn(name, l))
		case !errors.Is(err, ErrNoLetter):
			failed = append(failed, err)
		}
	}
	switch {
	case len(failed) > 0: // it may be there
		return DeadLetter{}, errors.Join(failed...)
	case len(found) == 0:
		return DeadLetter{}, fmt.Errorf("%w: %s: it was replayed or dropped, or is in none of %v", ErrNoLetter, id, names)
	case len(found) > 1:
		return DeadLetter{}, fmt.Errorf("%w: %s is in %s and in %s: give more of it, or --database", sql.ErrManyLetters, id, found[0].Database, found[1].Database)
	}
	return found[0], nil
}

// Waiting counts the dead letters of each flush job in the database that it writes to. A job
// whose database did not answer is not in it. All are asked at once: one that hangs keeps
// nobody from knowing of the others.
func (d *Dead) Waiting(ctx context.Context) (map[string]int64, error) {
	jobs := map[string][]string{} // by database
	for _, j := range d.config.Jobs {
		if !j.IsCommand() {
			jobs[j.Flush.To.Database] = append(jobs[j.Flush.To.Database], j.Name)
		}
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	var failed []error
	waiting := map[string]int64{}
	for name, of := range jobs {
		wg.Go(func() {
			found, err := d.dbs[name].LettersWaiting(ctx)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failed = append(failed, err)
				return
			}
			for _, job := range of {
				waiting[job] = found[job]
			}
		})
	}
	wg.Wait()
	return waiting, errors.Join(failed...)
}

// Keys names the dead letters that there are now, the oldest of each database first.
func (d *Dead) Keys(ctx context.Context, f DeadFilter) ([]DeadKey, error) {
	names, err := d.where(f)
	if err != nil {
		return nil, err
	}
	var keys []DeadKey
	for _, name := range names {
		found, err := d.dbs[name].LetterKeys(ctx, f.inside())
		if err != nil {
			return nil, err
		}
		for _, k := range found {
			keys = append(keys, DeadKey{ID: k.ID, Job: k.Job, Database: name})
		}
	}
	return keys, nil
}

// dropChunk is how many dead letters one transaction drops.
const dropChunk = 500

// Drop removes dead letters for good and says how many were still there. It tells, if
// told is not nil, how many of the keys are done.
func (d *Dead) Drop(ctx context.Context, keys []DeadKey, told func(done int)) (dropped int64, err error) {
	keys = slices.Clone(keys)
	slices.SortStableFunc(keys, func(a, b DeadKey) int { return cmp.Compare(a.Database, b.Database) })
	for done := 0; done < len(keys); {
		var ids []string
		name := keys[done].Database
		for _, k := range keys[done:min(done+dropChunk, len(keys))] {
			if k.Database == name {
				ids = append(ids, k.ID)
			}
		}
		n, err := d.dbs[name].DropLetters(ctx, ids)
		dropped += n
		if err != nil {
			return dropped, err
		}
		if done += len(ids); told != nil {
			told(done)
		}
	}
	return dropped, nil
}
