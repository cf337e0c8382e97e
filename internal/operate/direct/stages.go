package direct

import (
	"context"
	"errors"
	"fmt"

	"baton/internal/config"
	"baton/internal/daemon/site"
	"baton/internal/daemon/tasks"
	"baton/internal/diagnose"
	"baton/internal/flush/source/staging"
	"baton/internal/redislock"
)

// leftStages are the stages with records that no task of all flushes, by key, as far as Redis shows. The error names stages that could
// not be read.
func leftStages(ctx context.Context, stages *staging.Stages, all []tasks.Task) ([]diagnose.LeftStage, error) {
	left := []diagnose.LeftStage{}
	found, err := stages.Left(ctx, tasks.StagedBy(all))
	problems, said := []error{err}, map[staging.LeftStage]bool{}
	for _, s := range found {
		switch of := (staging.LeftStage{At: staging.At{Store: s.Store}, Job: s.Job}); {
		case s.Records > 0:
			left = append(left, diagnose.LeftStage{Store: s.Store, Key: s.Key, Job: s.Job, BatchID: s.ID, Records: s.Records})
		case s.Unknown && !said[of]: // a store may have hundreds of such keys
			said[of] = true
			problems = append(problems, fmt.Errorf("whether something is staged in store %q, by job %q, is not known: that store is not "+
				"configured any more; write the store under stores again", s.Store, s.Job))
		}
	}
	return left, errors.Join(problems...)
}

// LeftStages are the stages that no job of the configuration flushes, by key. The stages on one server of a Cluster are returned also if
// another server fails.
func (s *Site) LeftStages(ctx context.Context) ([]diagnose.LeftStage, error) {
	ctx, cancel := context.WithTimeout(ctx, site.CommandTimeout)
	defer cancel()
	l := s.session()
	all, err := tasks.All(l.Config, l.Stores)
	if err != nil {
		return nil, err
	}
	return leftStages(ctx, l.stages(l.ledger), all)
}

// DropStage removes a stage for good: never one that a job of this configuration or of a present node's may flush, nor another one than
// the caller has seen.
func (s *Site) DropStage(ctx context.Context, left diagnose.LeftStage) error {
	l := s.session()
	all, err := tasks.All(l.Config, l.Stores)
	if err != nil {
		return err
	}
	at := staging.At{Store: left.Store, Key: left.Key}
	if job, used := tasks.StagedBy(all)[at]; used {
		return fmt.Errorf("job %q flushes %s: the stages there are not dropped", job, at)
	}
	p, err := l.picture(ctx)
	if err != nil {
		return err
	}
	own := config.Hash(l.Config)
	for _, n := range p.Nodes {
		if p.Now.Sub(n.Seen()) <= redislock.GoneAfter && n.ConfigHash != own {
			return fmt.Errorf("node %q runs with other jobs than this configuration has, and one of them may flush %s: "+
				"give all nodes the same configuration, baton reload there, and drop it then", n.ID, at)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, site.CommandTimeout)
	defer cancel()
	dropped := staging.LeftStage{At: at, Job: left.Job, ID: left.BatchID, Records: left.Records}
	return l.stages(l.ledger).Drop(ctx, dropped)
}
