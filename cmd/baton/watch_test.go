package main

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"baton/cmd/baton/internal/cmdline"
	"baton/cmd/baton/internal/show"
	"baton/internal/testsupport"
)

// await waits until the text that was written to the terminal contains want after the position from.
func (s *tty) await(from int, want string) int {
	s.t.Helper()
	end := 0
	testsupport.AwaitNoError(s.t, "the terminal to show "+want, func() error {
		text := s.String()
		if len(text) > from {
			if at := regexp.MustCompile(want).FindStringIndex(text[from:]); at != nil {
				end = from + at[1]
				return nil
			}
		}
		return fmt.Errorf("it shows\n%q", tail(text, 3000))
	})
	return end
}

func tail(text string, most int) string { return text[max(0, len(text)-most):] }

func TestWatchRedrawsInPlaceAndLeavesTheTerminalAsItWas(t *testing.T) {
	c, redis := newCLI(t), testsupport.StartRedis(t)
	c.env["BATON_REDIS"], c.env["BATON_TTL"], c.env["TERM"] = redis.URL(), lease, "xterm"
	seen, screen := terminal(t, 100, 30)
	ctx, interrupt := context.WithCancel(t.Context())
	code := make(chan int, 1)
	stderr := &buffer{}
	go func() {
		code <- run(ctx, cmdline.Env{Args: []string{"status", "--watch", "--interval", "100ms"}, Stdin: strings.NewReader(""), Stdout: screen, Stderr: stderr,
			Getenv: func(name string) (string, bool) { v, ok := c.env[name]; return v, ok }})
	}()
	at := seen.await(0, `^\x1b\[\?1049h\x1b\[\?25l`)
	first := seen.await(at, `\x1b\[\?2026h\x1b\[H[^\n]*Ctrl-C ends[^\n]*\x1b\[K\r+\n\x1b\[K\r+\nLock "baton": \x1b\[31mno node leads\x1b\[0m[^\n]*\x1b\[K\r+\n`)
	c.daemon("--node-id", "db1", "--http", "off")
	at = seen.await(first, `\x1b\[H[^\n]*\n[^\n]*\nLock "baton": \x1b\[32mdb1 leads\x1b\[0m`)
	if text := seen.String(); strings.Contains(text[first:], "\x1b[2J") {
		t.Error("it clears the screen between frames, which flickers")
	}

	seen.resize(30, 5) // no signal is sent, because a test is in the foreground of no terminal
	at = seen.await(at, `\x1b\[2m… \d+ more lines\x1b\[0m\x1b\[K\x1b\[J\x1b\[\?2026l`)
	at = seen.await(at, `(?s)\x1b\[\?2026h\x1b\[H.*?\x1b\[\?2026l`)
	frames := regexp.MustCompile(`(?s)\x1b\[\?2026h\x1b\[H(.*?)\x1b\[J`).FindAllStringSubmatch(seen.String()[first:], -1)
	last := regexp.MustCompile(`\r+\n`).Split(frames[len(frames)-1][1], -1)
	if len(last) != 5 {
		t.Errorf("%d lines on 5: %q", len(last), last)
	}
	for _, line := range last {
		if n := show.TextWidth(strings.TrimSuffix(line, "\x1b[K")); n > 30 {
			t.Errorf("%d columns on 30: %q", n, line)
		}
	}

	seen.resize(100, 30)
	redis.Kill()
	at = seen.await(at, `\x1b\[31m\d\d:\d\d:\d\d [+-]\d\d:\d\d  not known for [^;\n]+; below is how it was at \d\d:\d\d:\d\d [+-]\d\d:\d\d: [^\n]*\n[^\n]*\nLock "baton": db1 leads`)
	redis.Restart()
	at = seen.await(at, `Ctrl-C ends`)
	interrupt()
	if got := <-code; got != cmdline.ExitOK || stderr.String() != "" {
		t.Errorf("Ctrl-C: %d, %s", got, stderr)
	}
	seen.await(at, `(?s)\x1b\[\?25h\x1b\[\?1049lLock "baton": .*`)
}

func TestWatchOverAPipeIsALog(t *testing.T) {
	c := newCLI(t)
	c.env["BATON_REDIS"], c.env["TERM"] = useRedis(t).URL(), "xterm"
	out := &buffer{}
	ctx, cancel := context.WithCancel(t.Context())
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, cmdline.Env{Args: []string{"status", "-w", "--interval", "100ms"}, Stdin: strings.NewReader(""), Stdout: out, Stderr: out,
			Getenv: func(name string) (string, bool) { v, ok := c.env[name]; return v, ok }})
	}()
	for deadline := time.Now().Add(time.Minute); strings.Count(out.String(), `Lock "baton": no node leads: `) < 4 && time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
	}
	cancel()
	if got := <-code; got != cmdline.ExitOK {
		t.Errorf("exit code %d", got)
	}
	if text := out.String(); !regexp.MustCompile(`^(\d\d:\d\d:\d\d [+-]\d\d:\d\d\nLock "baton": no node leads: [^\n]*\n![^\n]*\n\n){3}`).MatchString(text) || bytes.ContainsRune([]byte(text), '\x1b') {
		t.Errorf("a log:\n%q", text)
	}
}
