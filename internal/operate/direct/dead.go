package direct

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"baton/internal/config"
	"baton/internal/daemon/site"
	"baton/internal/flush/sql"
	"baton/internal/operate"
)

func filterOf(f operate.LetterFilter) sql.LetterFilter {
	return sql.LetterFilter{Job: f.Job, Within: f.Within, Before: f.Before, Text: f.Text}
}

// deadLetters gives one command access to all dead letters in the databases of a configuration. It needs no leader, and it needs Redis only
// to replay. Acceptances of rows use the same connections.
type deadLetters struct {
	config config.Config
	dbs    site.Databases
	stores site.Stores
	jobs   map[string]*replayer // the jobs whose letters were replayed so far
}

// openDead returns a deadLetters that connects at the first question.
func openDead(c config.Config) (*deadLetters, error) {
	redis, err := site.OpenRedis(c)
	if err != nil {
		return nil, err
	}
	dbs, err := site.OpenDatabases(c)
	if err != nil {
		return nil, errors.Join(err, redis.Close())
	}
	stores, err := site.OpenStores(c, redis)
	if err != nil {
		return nil, errors.Join(err, dbs.Close(), redis.Close())
	}
	return &deadLetters{config: c, dbs: dbs, stores: stores, jobs: map[string]*replayer{}}, nil
}

// close closes the connections.
func (d *deadLetters) close() error {
	return errors.Join(d.dbs.Close(), d.stores.Without(nil).Close(), d.stores[""].Close())
}

func (d *deadLetters) job(name string) (config.Job, bool) {
	for _, j := range d.config.Jobs {
		if j.Name == name {
			return j, true
		}
	}
	return config.Job{}, false
}

// where returns the names of the databases where a filter may find letters.
func (d *deadLetters) where(f operate.LetterFilter) ([]string, error) {
	all := slices.Sorted(maps.Keys(d.dbs))
	j, configured := d.job(f.Job)
	switch {
	case len(all) == 0:
		return nil, fmt.Errorf("%w: the configuration has no databases, and dead letters are in databases", operate.ErrDeadUsage)
	case f.Database != "" && d.dbs[f.Database] == nil:
		return nil, fmt.Errorf("%w: there is no database %q in the configuration: it has %v", operate.ErrDeadUsage, f.Database, all)
	case f.Database != "":
		return []string{f.Database}, nil
	case f.Job == "" || len(all) == 1:
		return all, nil
	case configured && !j.IsCommand():
		return []string{j.Flush.To.Database}, nil
	}
	return nil, fmt.Errorf("%w: job %q is not in the configuration: name the database of its dead letters with --database, one of %v",
		operate.ErrDeadUsage, f.Job, all)
}

// list returns at most n dead letters, the newest letter first. The argument cut is the maximum length of a record in characters; a longer
// record is cut. 0 means no limit. If one database fails, it still returns the letters of the others.
func (d *deadLetters) list(ctx context.Context, f operate.LetterFilter, n, cut int) ([]operate.Letter, error) {
	names, err := d.where(f)
	if err != nil {
		return nil, err
	}
	letters := []operate.Letter{}
	var failed []error
	most := n
	if f.Reason != "" {
		most = lettersSearched
	}
	for _, name := range names {
		found, err := d.dbs[name].Letters(ctx, filterOf(f), most, cut)
		failed = append(failed, err)
		for _, l := range found {
			if f.Reason == "" || reasonOf(l.Error) == f.Reason {
				letters = append(letters, letterIn(name, l))
			}
		}
	}
	slices.SortStableFunc(letters, func(a, b operate.Letter) int { return b.At.Compare(a.At) })
	return letters[:min(n, len(letters))], errors.Join(failed...)
}

// lettersSearched is how many of the newest letters of each database are searched for a given reason.
const lettersSearched = 5000

func letterIn(database string, l sql.Letter) operate.Letter {
	return operate.Letter{ID: l.ID, Job: l.Job, Database: database, BatchID: l.BatchID, At: l.At, Error: l.Error, Record: l.Record}
}

// find returns the only dead letter whose id is, or begins with, the given id.
func (d *deadLetters) find(ctx context.Context, id, database string) (operate.Letter, error) {
	names, err := d.where(operate.LetterFilter{Database: database})
	if err != nil {
		return operate.Letter{}, err
	}
	var found []operate.Letter
	var failed []error
	for _, name := range names {
		l, err := d.dbs[name].Letter(ctx, id)
		switch {
		case err == nil:
			found = append(found, letterIn(name, l))
		case !errors.Is(err, sql.ErrNoLetter):
			failed = append(failed, err)
		}
	}
	switch {
	case len(failed) > 0: // the letter may be in a database that did not answer
		return operate.Letter{}, errors.Join(failed...)
	case len(found) == 0:
		return operate.Letter{}, fmt.Errorf("%w: %s: it was replayed or dropped, or is in none of these databases: %s",
			sql.ErrNoLetter, id, strings.Join(names, ", "))
	case len(found) > 1:
		a, b := found[0].Database, found[1].Database
		return operate.Letter{}, fmt.Errorf("%w: %s is in %s and in %s: give more characters of the id, or --database",
			sql.ErrManyLetters, id, a, b)
	}
	return found[0], nil
}

// waiting counts the dead letters of each flush job, in the database that the job writes to. It omits a job whose database did not answer.
// It asks all databases at the same time, so that a database that hangs does not delay the counts of the others.
func (d *deadLetters) waiting(ctx context.Context) (map[string]int64, error) {
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

// keys returns the keys of the existing dead letters, the oldest letter of each database first.
func (d *deadLetters) keys(ctx context.Context, f operate.LetterFilter) ([]operate.LetterKey, error) {
	names, err := d.where(f)
	if err != nil {
		return nil, err
	}
	var keys []operate.LetterKey
	if f.Reason != "" {
		letters, err := d.list(ctx, f, len(names)*lettersSearched, 1)
		for _, l := range slices.Backward(letters) {
			keys = append(keys, l.Key())
		}
		return keys, err
	}
	for _, name := range names {
		found, err := d.dbs[name].LetterKeys(ctx, filterOf(f))
		if err != nil {
			return nil, err
		}
		for _, k := range found {
			keys = append(keys, operate.LetterKey{ID: k.ID, Job: k.Job, Database: name})
		}
	}
	return keys, nil
}

// dropChunk is the number of dead letters that one transaction drops.
const dropChunk = 500

// drop removes dead letters permanently and returns how many of them still existed. It reports the progress after each transaction.
func (d *deadLetters) drop(ctx context.Context, keys []operate.LetterKey, progress func(operate.Outcome)) (dropped int64, err error) {
	keys = slices.Clone(keys)
	slices.SortStableFunc(keys, func(a, b operate.LetterKey) int { return cmp.Compare(a.Database, b.Database) })
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
		done += len(ids)
		progress(operate.Outcome{Dropped: n})
	}
	return dropped, nil
}
