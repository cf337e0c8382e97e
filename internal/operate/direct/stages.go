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

// leftStages returns the stages with records that none of the given tasks flushes, by key. It returns the stages that it could read, and
// an error that names the other stages.
func leftStages(ctx context.Context, stages *staging.Stages, all []tasks.Task) ([]diagnose.LeftStage, error) {
	left := []diagnose.LeftStage{}
	found, err := stages.Left(ctx, tasks.StagedBy(all))
	problems, said := []error{err}, map[staging.LeftStage]bool{}
	for _, s := range found {
		switch of := (staging.LeftStage{Location: staging.Location{Store: s.Store}, Job: s.Job}); {
		case s.Records > 0:
			left = append(left, diagnose.LeftStage{Store: s.Store, Key: s.Key, Job: s.Job, BatchID: s.ID, Records: s.Records})
		case s.Unknown && !said[of]: // a store may contain hundreds of such keys
			said[of] = true
			problems = append(problems, fmt.Errorf("it is unknown whether store %q holds staged changes of job %q: the store is not "+
				"configured any more; add it under stores again", s.Store, s.Job))
		}
	}
	return left, errors.Join(problems...)
}

// LeftStages returns the stages that no job of the configuration flushes, by key. If a server of a Cluster fails, it still returns the
// stages on the other servers.
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

// DropStage removes a stage permanently. It never removes a stage that a job in this configuration, or in the configuration of a live node,
// may flush. It also never removes a stage that has changed since the caller saw the stage.
func (s *Site) DropStage(ctx context.Context, left diagnose.LeftStage) error {
	l := s.session()
	all, err := tasks.All(l.Config, l.Stores)
	if err != nil {
		return err
	}
	at := staging.Location{Store: left.Store, Key: left.Key}
	if job, used := tasks.StagedBy(all)[at]; used {
		return fmt.Errorf("job %q flushes %s: the stages there are not dropped", job, at)
	}
	p, err := l.state(ctx)
	if err != nil {
		return err
	}
	own := config.Hash(l.Config)
	for _, n := range p.Nodes {
		if p.Now.Sub(n.Seen()) <= redislock.GoneAfter && n.ConfigHash != own {
			return fmt.Errorf("node %q runs with other jobs than this configuration has, and one of them may flush %s: "+
				"give all nodes the same configuration, run baton reload there, and then drop the stage", n.ID, at)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, site.CommandTimeout)
	defer cancel()
	dropped := staging.LeftStage{Location: at, Job: left.Job, ID: left.BatchID, Records: left.Records}
	return l.stages(l.ledger).Drop(ctx, dropped)
}
