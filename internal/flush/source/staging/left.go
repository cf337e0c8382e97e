package staging

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gomodule/redigo/redis"

	"baton/internal/flush"
	"baton/internal/redisconn"
)

// ErrStageChanged means that the stage is not the one that was read before.
var ErrStageChanged = errors.New("flush: the stage has changed")

// LeftStage is the stage of a key that no job flushes any more.
type LeftStage struct {
	Key     string // beside which it is: the key, or the index, of a job
	Job     string // who has staged it
	ID      string // of the batch; "" if it has none
	Records int64  // 0: nothing is staged there
}

// StagedKeys are the keys beside which those sources stage.
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

// leftKeys are what may be staged beside a key, in the order of the scripts.
func leftKeys(live string) []any {
	k := Key{Live: live}
	return []any{k.StageKey(), k.MetaKey(), k.IndexKey()}
}

// StageList has the keys beside which flushes of the installation stage, or have staged,
// and the job of each. A stage that no job of the configuration flushes is found by it,
// without a SCAN; and those of another installation in the same Redis are not.
type StageList interface {
	NoteStages(ctx context.Context, jobs map[string]string) error
	NotedStages(ctx context.Context) (jobs map[string]string, err error)
	// ForgetStages removes keys from the list that have no stage and no job.
	ForgetStages(ctx context.Context, keys []string) error
}

// Stages finds the stages of the keys in a list.
type Stages struct {
	StageList
	store *redisconn.Store
}

// NewStages finds stages in a Redis. It does not connect.
func NewStages(store *redisconn.Store, list StageList) *Stages { return &Stages{list, store} }

var (
	leftScript = load("stage_left", 3)
	dropScript = load("stage_drop", 3)
)

// Left returns the stages, by key, of recorded keys that are not configured. If a server fails,
// it still returns those of the others.
func (s *Stages) Left(ctx context.Context, configured map[string]string) ([]LeftStage, error) {
	noted, err := s.NotedStages(ctx)
	if err != nil {
		return nil, err
	}
	var left []LeftStage
	var failed []error
	for key, job := range noted {
		if _, used := configured[key]; used || redisconn.CheckKey(key) != nil {
			continue
		}
		found, err := s.at(ctx, key, job)
		if err != nil {
			failed = append(failed, fmt.Errorf("look for what is staged beside %q: %w", key, err))
			continue
		}
		left = append(left, found)
	}
	slices.SortFunc(left, func(a, b LeftStage) int { return strings.Compare(a.Key, b.Key) })
	return left, errors.Join(failed...)
}

func (s *Stages) at(ctx context.Context, key, job string) (LeftStage, error) {
	left := LeftStage{Key: key}
	reply, err := redis.Values(s.store.Run(ctx, key, func(c redis.Conn) (any, error) {
		return leftScript.DoContext(ctx, c, leftKeys(key)...)
	}))
	if err == nil {
		_, err = redis.Scan(reply, &left.Records, &left.ID, &left.Job)
	}
	if left.Job == "" {
		left.Job = job
	}
	return left, err
}

// Drop removes a stage for good. ErrStageChanged if it is another one by now.
func (s *Stages) Drop(ctx context.Context, left LeftStage) error {
	verdict, err := redis.String(s.store.Run(ctx, left.Key, func(c redis.Conn) (any, error) {
		return dropScript.DoContext(ctx, c, append(leftKeys(left.Key), left.ID)...)
	}))
	switch {
	case err != nil:
		return fmt.Errorf("drop what is staged beside %q: %w", left.Key, err)
	case verdict != "dropped":
		return fmt.Errorf("%w: batch %q beside %q is not there any more; baton stage list shows what is", ErrStageChanged, left.ID,
			left.Key)
	}
	return s.ForgetStages(ctx, []string{left.Key})
}
