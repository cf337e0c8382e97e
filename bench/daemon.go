package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// node is a real `baton run` process.
type node struct {
	cmd  *exec.Cmd
	log  bytes.Buffer
	done chan error // how it ended
}

// startNode runs baton with that configuration.
func startNode(ctx context.Context, program, dir, config string) (*node, error) {
	file := filepath.Join(dir, "baton.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		return nil, err
	}
	n := &node{cmd: exec.CommandContext(ctx, program, "run", "--config", file), done: make(chan error, 1)}
	n.cmd.Stderr = &n.log
	if err := n.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { n.done <- n.cmd.Wait() }()
	return n, nil
}

func (n *node) pid() int { return n.cmd.Process.Pid }

// stop ends the process in order.
func (n *node) stop() error {
	if err := n.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return n.failed(err)
	}
	select {
	case err := <-n.done:
		return n.failed(err)
	case <-time.After(20 * time.Second):
		return n.failed(errors.Join(errors.New("does not end after SIGTERM"), n.cmd.Process.Kill(), <-n.done))
	}
}

// failed adds the log to an error. Call it when the process has ended.
func (n *node) failed(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("baton run: %w; its log:\n%s", err, n.log.String())
}

// await waits until ready says so, or the node ends.
func (n *node) await(ctx context.Context, ready func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		if ok, err := ready(); ok || err != nil {
			return err
		}
		select {
		case err := <-n.done:
			n.done <- nil // for stop
			return n.failed(fmt.Errorf("ended: %w", errors.Join(err, os.ErrProcessDone)))
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}
