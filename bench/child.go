package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime/debug"
	"runtime/pprof"
	"time"

	"baton/bench/internal/rig"
)

// childArgument makes this program a child process that does one task.
const childArgument = "-child"

// task is the order to a child.
type task struct {
	Path    string
	Program string
	Redis   string // host:port
	DSN     string
	Rows    int
	Table   int    // rows in the table; the task writes some of them
	Profile string // file for a CPU profile, or empty
}

// result is the outcome of a task.
type result struct {
	Rows    int64
	Seconds float64
	CPU     float64 // seconds of the program alone, without the servers
	PeakMB  float64
	// DatabaseCPU is the processor time of the database's server in seconds, including the time for connecting.
	DatabaseCPU float64
	Longest     slowCommand // of the program's commands in Redis
}

// perSecond returns the number of rows per second.
func (r result) perSecond() float64 { return float64(r.Rows) / r.Seconds }

// spawn runs a task in its own process.
func spawn(ctx context.Context, t task) (result, error) {
	program, err := os.Executable()
	if err != nil {
		return result{}, err
	}
	in, err := json.Marshal(t)
	if err != nil {
		return result{}, err
	}
	var out, problems bytes.Buffer
	cmd := exec.CommandContext(ctx, program, childArgument)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(in), &out, &problems
	if err := cmd.Run(); err != nil {
		return result{}, fmt.Errorf("%s, %s: %w: %s", t.Path, t.Program, err, bytes.TrimSpace(problems.Bytes()))
	}
	var r result
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		return r, fmt.Errorf("%s, %s: read its result: %w", t.Path, t.Program, err)
	}
	return r, nil
}

// child does one task and writes its result.
func child(ctx context.Context, in io.Reader, out io.Writer) error {
	var t task
	if err := json.NewDecoder(in).Decode(&t); err != nil {
		return err
	}
	program, ok := find(t)
	if !ok {
		return errors.New("no such path and program")
	}
	work, err := program.prepare(ctx, t)
	if err != nil {
		return err
	}
	log, err := watchRedis(t.Redis)
	if err != nil {
		return err
	}
	defer log.close()
	if program.redis {
		if err := program.data.change(log.conn, rig.AsTheyArrive(t.Rows, t.Table)); err != nil {
			return err
		}
	}
	if err := log.reset(); err != nil {
		return err
	}
	r, err := measure(ctx, work, t.Profile)
	if err != nil {
		return err
	}
	if r.Longest, err = log.longest(clientName); err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(r)
}

// measure runs work and records its costs.
func measure(ctx context.Context, work func(context.Context) (int64, error), profile string) (r result, err error) {
	if profile != "" {
		f, err := os.Create(profile)
		if err != nil {
			return r, err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return r, err
		}
		defer pprof.StopCPUProfile()
	}
	debug.FreeOSMemory()
	if err := forgetPeak(); err != nil {
		return r, err
	}
	cpu := cpuSeconds()
	began := time.Now()
	if r.Rows, err = work(ctx); err != nil {
		return r, err
	}
	r.Seconds = time.Since(began).Seconds()
	r.CPU = cpuSeconds() - cpu
	r.PeakMB, err = rig.PeakMB(os.Getpid())
	return r, err
}
