package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

type outcome string

const (
	killed   outcome = "killed"
	survived outcome = "SURVIVED"
	excused  outcome = "survives"  // its file says why
	timedOut outcome = "TIMED OUT" // a time-out is no assertion
	broken   outcome = "NO MUTANT" // the mutant does not apply, or does not compile
	unknown  outcome = "NO TEST"   // the pattern matches no test
)

// hunt tries mutants. Several goroutines may use it.
type hunt struct {
	dir     string
	timeout time.Duration

	mu     sync.Mutex
	counts map[outcome]int
}

// try applies a mutant, runs its test and prints the outcome.
func (h *hunt) try(ctx context.Context, m mutant) {
	began := time.Now()
	o, detail := h.outcome(ctx, m)
	if ctx.Err() != nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.counts[o]++
	fmt.Printf("%-9s  %s/%s  %s  (%s)\n", o, m.topic, m.name, m.killed+m.survives, time.Since(began).Round(100*time.Millisecond))
	if o != killed && o != excused {
		fmt.Printf("    %s: %s\n    %s\n", m.promise, m.breaks, strings.ReplaceAll(strings.TrimSpace(detail), "\n", "\n    "))
	}
}

func (h *hunt) verdict(of int) error {
	var text []string
	for _, o := range []outcome{killed, excused, survived, timedOut, broken, unknown} {
		if n := h.counts[o]; n > 0 {
			text = append(text, fmt.Sprintf("%d %s", n, strings.ToLower(string(o))))
		}
	}
	fmt.Printf("\n%d mutants: %s\n", of, strings.Join(text, ", "))
	if h.counts[killed]+h.counts[excused] < of {
		return errors.New("not every mutant was killed")
	}
	return nil
}

func (h *hunt) outcome(ctx context.Context, m mutant) (o outcome, detail string) {
	overlay, err := h.overlay(m)
	if err != nil {
		return broken, err.Error()
	}
	pkg, tests, found := strings.Cut(m.killed, " ")
	switch {
	case m.survives != "":
		pkg, _, _ = strings.Cut(m.file[:strings.LastIndex(m.file, "/")], ":")
		if out, err := h.goRun(ctx, overlay, "vet", "./"+pkg); err != nil {
			return broken, out
		}
		return excused, ""
	case !found:
		return unknown, "add killed: ./package TestName"
	}
	out, err := h.goRun(ctx, overlay, "test", "-count=1", "-vet=off", "-timeout", h.timeout.String(), "-run", exactly(tests), pkg)
	switch {
	case strings.Contains(out, "panic: test timed out"):
		return timedOut, tail(out)
	case strings.Contains(out, "[build failed]") || strings.Contains(out, "[setup failed]"):
		return broken, tail(out)
	case err == nil && strings.Contains(out, "[no tests to run]"):
		return unknown, tail(out)
	case err == nil:
		return survived, tail(out)
	case !strings.Contains(out, "--- FAIL: "):
		return broken, tail(out)
	}
	return killed, ""
}

// overlay writes the mutated file and the file for go's -overlay flag. It returns the path of the latter.
func (h *hunt) overlay(m mutant) (path string, err error) {
	text, err := os.ReadFile(m.file)
	if err != nil {
		return "", err
	}
	mutated, err := m.apply(string(text))
	if err != nil {
		return "", err
	}
	dir := filepath.Join(h.dir, m.name)
	if err := os.Mkdir(dir, 0o755); err != nil {
		return "", err
	}
	file := filepath.Join(dir, filepath.Base(m.file))
	if err := os.WriteFile(file, []byte(mutated), 0o600); err != nil {
		return "", err
	}
	real, err := filepath.Abs(m.file)
	if err != nil {
		return "", err
	}
	b, err := json.Marshal(map[string]any{"Replace": map[string]string{real: file}})
	if err != nil {
		return "", err
	}
	path = filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, b, 0o600)
}

// goRun runs the go command. The overlay is set in the environment, so that it also applies to the programs that a test builds.
func (h *hunt) goRun(ctx context.Context, overlay string, args ...string) (output string, err error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Env = append(os.Environ(), "GOFLAGS="+strings.TrimSpace(os.Getenv("GOFLAGS")+" -overlay="+overlay))
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// exactly returns a pattern that matches only the tests, or their subtests, with that name. It uses parentheses because go test splits a
// pattern at its slashes, but not within parentheses.
func exactly(tests string) string {
	return "^(" + strings.ReplaceAll(tests, "/", ")$/^(") + ")$"
}

func tail(s string) string {
	const most = 1500
	if len(s) > most {
		return "..." + s[len(s)-most:]
	}
	return s
}
