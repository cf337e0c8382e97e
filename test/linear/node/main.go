// Command node is one node of the linearizability test: a real elector over a real lock. It records every operation of the lock and every
// moment in which it acts. It writes each line by one write(2), so that no line is lost when the process dies.
//
//	node SETUP      # wire.Setup as JSON; its input tells it to meddle, and to end in order when that ends
package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"baton/internal/elector"
	"baton/internal/heartbeat"
	"baton/test/linear/wire"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	if len(os.Args) != 2 {
		return errors.New("want one argument, the setup")
	}
	var setup wire.Setup
	if err := json.Unmarshal([]byte(os.Args[1]), &setup); err != nil {
		return fmt.Errorf("read the setup: %w", err)
	}
	ctx, end := context.WithCancel(context.Background())
	defer end()
	diary, err := openDiary(setup.History)
	if err != nil {
		return err
	}
	floor, err := openFloor(setup.FloorFile)
	if err != nil {
		return err
	}
	heard := &ears{hints: make(chan elector.Hint, 16)}
	lock, leave, err := open(ctx, setup, heard)
	if err != nil {
		return fmt.Errorf("open the lock: %w", err)
	}
	meddling, _, err := open(ctx, setup, &ears{hints: make(chan elector.Hint, 1)})
	if err != nil {
		return fmt.Errorf("open the lock once more: %w", err)
	}
	calls, terms := &atomic.Int64{}, &past{}
	go func() {
		defer end() // the election ends when the input ends
		meddle(ctx, setup, &recorded{lock: meddling, diary: diary, floor: floor, calls: calls, meddling: true}, terms, os.Stdin)
	}()
	work := newWork(setup, diary, terms)
	spread := time.Duration(0) // the same value as in the daemon
	if setup.Design == wire.Quorum {
		spread = 5 * time.Millisecond
	}
	el, err := elector.New(&recorded{lock: lock, diary: diary, floor: floor, calls: calls}, work.lead, elector.Config{
		NodeID: setup.NodeID, Timing: setup.Timing, PollInterval: setup.Poll, Floor: floor.value(), Hints: heard.hints,
		Hinted: func() bool { return int(heard.listening.Load()) == max(1, len(setup.Redis)) }, HintSpread: spread,
		NewOwner: newOwner,
		Observe: func(e elector.Event) {
			if e.Kind != elector.EventRenewal {
				diary.write(wire.Line{Kind: wire.Event, At: now(), Owner: e.Owner, Epoch: e.Epoch, Text: tell(e)})
			}
		},
		Die: func(reason string) {
			diary.write(wire.Line{Kind: wire.Die, At: now(), Text: reason})
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		},
	})
	if err != nil {
		return err
	}
	err = el.Run(ctx)
	leave()
	return err
}

func tell(e elector.Event) string {
	parts := []string{string(e.Kind), e.Holder, e.Reason}
	if e.Err != nil {
		parts = append(parts, e.Err.Error())
	}
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), ": ")
}

func now() int64 { return int64(heartbeat.Boottime()) }

// newOwner makes a UUID of version 4.
func newOwner() (string, error) {
	var b [16]byte
	_, _ = rand.Read(b[:]) // Read of crypto/rand never returns an error
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:]), nil
}
