package staging

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/gomodule/redigo/redis"

	"baton/internal/flush"
	"baton/internal/redisconn"
)

// ErrStageChanged means that the stage has changed since the caller read it.
var ErrStageChanged = errors.New("flush: the stage has changed")

// Location says in which store, and next to which key, a stage is stored.
type Location struct {
	Store string // its name in the configuration; "" is the Redis that has the lock
	Key   string // a job's key or index, next to which the stage lies
}

// String returns the location in a form for people.
func (a Location) String() string {
	if a.Store == "" {
		return strconv.Quote(a.Key)
	}
	return fmt.Sprintf("%q in store %q", a.Key, a.Store)
}

// noted returns the location as a StageList contains it. The form is unambiguous, because the name of a store contains no zero byte.
func (a Location) noted() string {
	if a.Store == "" && !strings.HasPrefix(a.Key, "\x00") {
		return a.Key
	}
	return "\x00" + a.Store + "\x00" + a.Key
}

func readAt(noted string) Location {
	if rest, elsewhere := strings.CutPrefix(noted, "\x00"); elsewhere {
		store, key, _ := strings.Cut(rest, "\x00")
		return Location{store, key}
	}
	return Location{Key: noted}
}

// LeftStage is the stage of a key that no job flushes any longer.
type LeftStage struct {
	Location
	Job     string // the job that has staged it
	ID      string // the id of the stage; "" if it has none
	Records int64  // 0: the stage is empty
	Unknown bool   // the store is not configured, so the stage's content is unknown
	edition string // the edition of the list in which the stage was found
}

// StagedKeys returns the live keys of those sources that stage changes.
func StagedKeys(sources []flush.Source) []string {
	var all []string
	for _, s := range sources {
		if k, ok := s.(interface{ stagedAt() string }); ok {
			all = append(all, k.stagedAt())
		}
	}
	return all
}

func (k Key) stagedAt() string { return k.Live }

// leftKeys returns the keys of the stage of a live key, in the order in which the scripts expect them.
func leftKeys(live string) []any {
	k := Key{Live: live}
	return []any{k.StageKey(), k.MetaKey(), k.IndexKey()}
}

// StageList lists the places where flushes of this installation stage changes or have staged changes, each with its job. With this list,
// Stages needs no SCAN to find a stage that no configured job flushes. The list contains no stages of another installation in the same
// Redis.
type StageList interface {
	NoteStages(ctx context.Context, jobs map[string]string) error
	// NotedStages returns the list and its edition, which changes with each call of NoteStages.
	NotedStages(ctx context.Context) (jobs map[string]string, edition string, err error)
	// ForgetStages removes from the list places that had neither a stage nor a job in that edition. It removes nothing from another
	// edition.
	ForgetStages(ctx context.Context, edition string, noted []string) error
}

// Stages finds the stages at the places in a list.
type Stages struct {
	list   StageList
	stores func() map[string]*redisconn.Store
}

// NewStages returns the Stages of a list. The function stores returns the present stores by their names, and Stages calls it whenever it
// needs them. NewStages does not connect.
func NewStages(stores func() map[string]*redisconn.Store, list StageList) *Stages {
	return &Stages{list, stores}
}

// Note adds places to the list, each with the job that stages there.
func (s *Stages) Note(ctx context.Context, jobs map[Location]string) error {
	noted := make(map[string]string, len(jobs))
	for at, job := range jobs {
		noted[at.noted()] = job
	}
	return s.list.NoteStages(ctx, noted)
}

// Forget removes from the list places that [Stages.Left] has found without a stage and without a job.
//
// Without the comparison of editions, a place of a present job could get lost: a leader finds that place without a job, and is suspended.
// The next leader has a job that stages there, and notes the place. Then the earlier leader wakes up and removes the place. The job would
// go on, but when the job is removed later, its last stage would be in no list, and nothing would report its changes.
func (s *Stages) Forget(ctx context.Context, places []LeftStage) error {
	if len(places) == 0 {
		return nil
	}
	noted := make([]string, len(places))
	for i, at := range places {
		noted[i] = at.noted()
	}
	return s.list.ForgetStages(ctx, places[0].edition, noted) // one call of Left returns stages of one edition
}

var (
	leftScript = load("stage_left", 3)
	dropScript = load("stage_drop", 3)
)

// Left returns the stages at recorded places where no configured job stages. It asks all stores at the same time. If a server fails, Left
// still returns the stages on the other servers.
func (s *Stages) Left(ctx context.Context, configured map[Location]string) ([]LeftStage, error) {
	noted, edition, err := s.list.NotedStages(ctx)
	if err != nil {
		return nil, err
	}
	stores, asked := s.stores(), map[*redisconn.Store][]LeftStage{}
	var left []LeftStage
	for text, job := range noted {
		at := readAt(text)
		if _, used := configured[at]; used || redisconn.CheckKey(at.Key) != nil {
			continue
		}
		if store := stores[at.Store]; store != nil {
			asked[store] = append(asked[store], LeftStage{Location: at, Job: job, edition: edition})
		} else {
			left = append(left, LeftStage{Location: at, Job: job, Unknown: true, edition: edition})
		}
	}
	var mu sync.Mutex
	var failed []error
	var wg sync.WaitGroup
	for store, some := range asked {
		wg.Go(func() {
			found, err := leftIn(ctx, store, some)
			mu.Lock()
			defer mu.Unlock()
			left, failed = append(left, found...), append(failed, err)
		})
	}
	wg.Wait()
	slices.SortFunc(left, func(a, b LeftStage) int {
		return cmp.Or(strings.Compare(a.Store, b.Store), strings.Compare(a.Key, b.Key))
	})
	return left, errors.Join(failed...)
}

// leftIn reads the stages in one store. If the store is one server and does not answer for a key, leftIn does not try the other keys.
func leftIn(ctx context.Context, store *redisconn.Store, asked []LeftStage) (found []LeftStage, err error) {
	var failed []error
	for _, l := range asked {
		err := l.read(ctx, store)
		if err != nil {
			failed = append(failed, fmt.Errorf("look for stages beside %s: %w", l.Location, err))
			if !store.IsCluster() && redisconn.Unavailable(err) != "" {
				break
			}
			continue
		}
		found = append(found, l)
	}
	return found, errors.Join(failed...)
}

func (l *LeftStage) read(ctx context.Context, store *redisconn.Store) error {
	reply, err := redis.Values(store.Run(ctx, l.Key, func(c redis.Conn) (any, error) {
		return leftScript.DoContext(ctx, c, leftKeys(l.Key)...)
	}))
	noted := l.Job
	if err == nil {
		_, err = redis.Scan(reply, &l.Records, &l.ID, &l.Job)
	}
	l.Job = cmp.Or(l.Job, noted)
	return err
}

// Drop removes a stage for good. It returns ErrStageChanged if the stage has changed since Left returned it.
func (s *Stages) Drop(ctx context.Context, left LeftStage) error {
	store := s.stores()[left.Store]
	if store == nil {
		return fmt.Errorf("drop the stages beside %s: there is no such store in the configuration", left.Location)
	}
	_, edition, err := s.list.NotedStages(ctx)
	if err != nil {
		return fmt.Errorf("drop the stages beside %s: %w", left.Location, err)
	}
	verdict, err := redis.String(store.Run(ctx, left.Key, func(c redis.Conn) (any, error) {
		return dropScript.DoContext(ctx, c, append(leftKeys(left.Key), left.ID)...)
	}))
	switch {
	case err != nil:
		return fmt.Errorf("drop the stages beside %s: %w", left.Location, err)
	case verdict != "dropped":
		return fmt.Errorf("%w: batch %q beside %s no longer exists; baton stage list shows the stages", ErrStageChanged, left.ID,
			left.Location)
	}
	left.edition = edition
	return s.Forget(ctx, []LeftStage{left})
}
