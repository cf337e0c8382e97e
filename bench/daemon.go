package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"baton/bench/internal/rig"
)

// node is a real `baton run` process.
type node struct{ *rig.Process }

// startNode runs baton with the given configuration.
func startNode(program, dir, config string) (*node, error) {
	file := filepath.Join(dir, "baton.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		return nil, err
	}
	p, err := rig.Launch([]string{program, "run", "--config", file})
	return &node{p}, err
}

// await calls ready at intervals until it returns true, or the node ends.
func (n *node) await(ctx context.Context, limit, every time.Duration, ready func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if ok, err := ready(); ok || err != nil {
			return err
		}
		select {
		case <-n.Done():
			return fmt.Errorf("baton run has ended: %w", n.Err())
		case <-ctx.Done():
			return fmt.Errorf("waited %v: %w", limit, ctx.Err())
		case <-tick.C:
		}
	}
}

// withBaton builds the program and calls do, which measures nodes of the program in a bed with PostgreSQL.
func withBaton(ctx context.Context, o options, do func(b *bed, program, dir string) error) (err error) {
	dir, err := os.MkdirTemp(o.dir, "baton-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	program, err := rig.BuildBaton(ctx, dir)
	if err != nil {
		return err
	}
	b, err := newBed(ctx, postgres(), o.dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	return do(b, program, dir)
}
