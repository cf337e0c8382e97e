// Command work is the command of the jobs in this test. It records that it has begun, that it lives, and that it ends.
//
//	work FILE 300ms [fails=N] [stubborn]
//
// With fails=N its first attempts of two slots of three fail, up to N attempts. With stubborn it ignores SIGTERM, and leaves a child in
// another session that would live for ever.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"baton/test/slots/wire"
)

// beatEvery is the precision with which the end of a killed process is known.
const beatEvery = 20 * time.Millisecond

func main() {
	code, err := work(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 70
	}
	os.Exit(code)
}

func work(args []string) (code int, err error) {
	if len(args) < 2 {
		return 0, fmt.Errorf("want a file and a duration, not %q", args)
	}
	file, err := os.OpenFile(args[0], os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return 0, err
	}
	begun := begin()
	told := make(chan os.Signal, 1)
	child := slices.Contains(args, "child")
	switch {
	case child:
		signal.Ignore(syscall.SIGTERM)
	case slices.Contains(args, "stubborn"):
		signal.Ignore(syscall.SIGTERM)
		if err := write(file, begun); err != nil {
			return 0, err
		}
		if err := leaveChild(args[0]); err != nil {
			return 0, err
		}
	default:
		signal.Notify(told, syscall.SIGTERM)
		if err := write(file, begun); err != nil {
			return 0, err
		}
	}
	lasts, err := time.ParseDuration(args[1])
	if err != nil {
		return 0, err
	}
	over := time.After(lasts)
	for working := true; working; {
		select {
		case <-over:
			working = false
		case <-told:
			return 143, write(file, wire.Line{Kind: wire.End, Run: begun.Run, Boot: boottime(), Code: 143})
		case <-time.After(beatEvery):
			if err := write(file, wire.Line{Kind: wire.Beat, Run: begun.Run, Boot: boottime()}); err != nil {
				return 0, err
			}
		}
	}
	if fails(args, begun) {
		code = 1
	}
	return code, write(file, wire.Line{Kind: wire.End, Run: begun.Run, Boot: boottime(), Code: code})
}

// begin returns the line of a process that has just begun.
func begin() wire.Line {
	number := func(name string) int64 {
		n, _ := strconv.ParseInt(os.Getenv(name), 10, 64) // the judge notices a missing value
		return n
	}
	return wire.Line{
		Kind: wire.Begin, Run: os.Getenv("BATON_RUN_ID"), Boot: boottime(), Wall: time.Now().UnixNano(), Pid: os.Getpid(),
		Job: os.Getenv("BATON_JOB"), Slot: os.Getenv("BATON_SLOT"), Attempt: int(number("BATON_ATTEMPT")), Epoch: number("BATON_EPOCH"),
		Node: os.Getenv("BATON_NODE_ID"), Trigger: os.Getenv("BATON_TRIGGER"), Lock: os.Getenv("BATON_LOCK_KEY"),
	}
}

func leaveChild(file string) error {
	own, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(own, file, "1h", "child")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd.Start() // when this process ends, the child has no parent that waits for it
}

// fails reports whether this attempt must fail. It decides by the slot, so that all attempts of a slot have a fixed result.
func fails(args []string, l wire.Line) bool {
	for _, a := range args {
		if text, found := strings.CutPrefix(a, "fails="); found {
			n, _ := strconv.Atoi(text)
			sum := 0
			for _, c := range l.Slot {
				sum += int(c)
			}
			return l.Attempt <= n && sum%3 > 0
		}
	}
	return false
}

func write(file *os.File, l wire.Line) error {
	text, err := json.Marshal(l)
	if err != nil {
		return err
	}
	_, err = file.Write(append(text, '\n'))
	return err
}

func boottime() int64 {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts) // never fails on Linux
	return ts.Nano()
}
