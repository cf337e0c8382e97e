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

// ErrStageChanged means that the stage is not the one that the caller has read.
var ErrStageChanged = errors.New("flush: the stage has changed")

// At is the place of a stage.
type At struct {
	Store string // its name in the configuration; "" is the Redis that has the lock
	Key   string // the key, or the index, of a job; the stage is beside it
}

// String is the place's name for people.
func (a At) String() string {
	if a.Store == "" {
		return strconv.Quote(a.Key)
	}
	return fmt.Sprintf("%q in store %q", a.Key, a.Store)
}

// noted is the place's name in a list: the name of a store contains no zero byte.
func (a At) noted() string {
	if a.Store == "" && !strings.HasPrefix(a.Key, "\x00") {
		return a.Key
	}
	return "\x00" + a.Store + "\x00" + a.Key
}

func readAt(noted string) At {
	if rest, elsewhere := strings.CutPrefix(noted, "\x00"); elsewhere {
		store, key, _ := strings.Cut(rest, "\x00")
		return At{store, key}
	}
	return At{Key: noted}
}

// LeftStage is the stage of a key that no job flushes any more.
type LeftStage struct {
	At
	Job     string // the job that has staged it
	ID      string // of the batch; "" if it has none
	Records int64  // 0: the stage is empty
	Unknown bool   // its store is not configured, so its content is unknown
}

// StagedKeys are the keys beside which the sources stage.
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

// leftKeys are the keys of a stage beside a key, in the order of the scripts.
func leftKeys(live string) []any {
	k := Key{Live: live}
	return []any{k.StageKey(), k.MetaKey(), k.IndexKey()}
}

// StageList has the places where flushes of the installation stage, or have staged, and the job of each. It finds a stage that no job of
// the configuration flushes, without a SCAN, and it does not contain stages of another installation in the same Redis.
type StageList interface {
	NoteStages(ctx context.Context, jobs map[string]string) error
	NotedStages(ctx context.Context) (jobs map[string]string, err error)
	// ForgetStages removes places from the list that have no stage and no job.
	ForgetStages(ctx context.Context, noted []string) error
}

// Stages finds the stages of the places in a list.
type Stages struct {
	list   StageList
	stores func() map[string]*redisconn.Store
}

// NewStages finds stages in the stores that exist at the time of each call, by their names. It does not connect.
func NewStages(stores func() map[string]*redisconn.Store, list StageList) *Stages {
	return &Stages{list, stores}
}

// Note notes the job that stages in each place.
func (s *Stages) Note(ctx context.Context, jobs map[At]string) error {
	noted := make(map[string]string, len(jobs))
	for at, job := range jobs {
		noted[at.noted()] = job
	}
	return s.list.NoteStages(ctx, noted)
}

// Forget removes places from the list that have no stage and no job.
func (s *Stages) Forget(ctx context.Context, places []At) error {
	noted := make([]string, len(places))
	for i, at := range places {
		noted[i] = at.noted()
	}
	return s.list.ForgetStages(ctx, noted)
}

var (
	leftScript = load("stage_left", 3)
	dropScript = load("stage_drop", 3)
)

// Left returns the stages of recorded places that are not configured. It asks all stores at the same time. If a server fails, it still
// returns those of the others.
func (s *Stages) Left(ctx context.Context, configured map[At]string) ([]LeftStage, error) {
	noted, err := s.list.NotedStages(ctx)
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
			asked[store] = append(asked[store], LeftStage{At: at, Job: job})
		} else {
			left = append(left, LeftStage{At: at, Job: job, Unknown: true})
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

// leftIn reads the stages in one store. If the store is away, it does not try every key.
func leftIn(ctx context.Context, store *redisconn.Store, asked []LeftStage) (found []LeftStage, err error) {
	var failed []error
	for _, l := range asked {
		err := l.read(ctx, store)
		if err != nil {
			failed = append(failed, fmt.Errorf("look for stages beside %s: %w", l.At, err))
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

// Drop removes a stage for good. ErrStageChanged if it is another one by now.
func (s *Stages) Drop(ctx context.Context, left LeftStage) error {
	store := s.stores()[left.Store]
	if store == nil {
		return fmt.Errorf("drop the stages beside %s: there is no such store in the configuration", left.At)
	}
	verdict, err := redis.String(store.Run(ctx, left.Key, func(c redis.Conn) (any, error) {
		return dropScript.DoContext(ctx, c, append(leftKeys(left.Key), left.ID)...)
	}))
	switch {
	case err != nil:
		return fmt.Errorf("drop the stages beside %s: %w", left.At, err)
	case verdict != "dropped":
		return fmt.Errorf("%w: batch %q beside %s is not there any more; baton stage list shows the stages", ErrStageChanged, left.ID,
			left.At)
	}
	return s.Forget(ctx, []At{left.At})
}
