package redisledger

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/redisconn"
	"baton/internal/redisconn/redistest"
	"baton/internal/testsupport"
)

func newOutputs(t *testing.T) (*Ledger, redis.Conn) {
	t.Helper()
	server := testsupport.StartRedis(t)
	store := redistest.Open(t, redisconn.Options{URL: server.URL()})
	return NewLedger(store, LedgerOptions{LockKey: "baton"}), server.Conn()
}

func printed(t *testing.T, l *Ledger, run string, offset int64, text string) {
	t.Helper()
	if err := l.AppendOutput(t.Context(), Output{Job: "report", RunID: run, Offset: offset, Text: []byte(text),
		MaxAge: time.Hour}); err != nil {
		t.Fatal(err)
	}
}

func TestOutputIsReadAsItWasPrinted(t *testing.T) {
	l, conn := newOutputs(t)
	for _, c := range []struct {
		name   string
		print  func(run string)
		from   int64
		offset int64
		text   string
	}{
		{"nothing yet", func(string) {}, 0, 0, ""},
		{"one piece", func(r string) { printed(t, l, r, 0, "one\n") }, 0, 0, "one\n"},
		{"two pieces, the second alone", func(r string) { printed(t, l, r, 0, "one\n"); printed(t, l, r, 4, "two\x00\xff\n") }, 4, 4,
			"two\x00\xff\n"},
		{"nothing new", func(r string) { printed(t, l, r, 0, "one\n") }, 4, 4, ""},
		{"a piece again, since its answer was lost", func(r string) { printed(t, l, r, 0, "one\n"); printed(t, l, r, 0, "one\n") }, 0, 0,
			"one\n"},
		{"a piece again, and more", func(r string) { printed(t, l, r, 0, "one\n"); printed(t, l, r, 0, "one\ntwo\n") }, 0, 0, "one\ntwo\n"},
		{"an older piece again", func(r string) { printed(t, l, r, 0, "one\ntwo\n"); printed(t, l, r, 0, "one\n") }, 0, 0, "one\ntwo\n"},
		{"bytes left out", func(r string) { printed(t, l, r, 0, "one\n"); printed(t, l, r, 100, "two\n") }, 2, 100, "two\n"},
		{"more than is kept", func(r string) {
			for i := range int64(3) {
				printed(t, l, r, i*KeepOutput, strings.Repeat(fmt.Sprint(i), KeepOutput))
			}
		}, 5, 2 * KeepOutput, strings.Repeat("2", KeepOutput)},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.print(c.name)
			o, err := l.ReadOutput(t.Context(), "report", c.name, c.from)
			if err != nil || o.Offset != c.offset || string(o.Text) != c.text {
				t.Errorf("got %d bytes %.40q from %d, %v; want %d bytes %.40q from %d", len(o.Text), o.Text, o.Offset, err, len(c.text),
					c.text, c.offset)
			}
		})
	}
	if ms, err := redis.Int64(conn.Do("PTTL", "{baton}:job:report:output:one piece")); err != nil || ms <= 0 ||
		ms > time.Hour.Milliseconds() {
		t.Errorf("the output is kept for %d ms, %v; want an hour", ms, err)
	}
}

// If a command prints without end, Redis must never contain much more than the kept output.
func TestOutputInRedisIsBounded(t *testing.T) {
	l, conn := newOutputs(t)
	piece := bytes.Repeat([]byte("x"), 10_000)
	for at := int64(0); at < 1<<20; at += int64(len(piece)) {
		printed(t, l, "run", at, string(piece))
		if n, err := redis.Int(conn.Do("STRLEN", "{baton}:job:report:output:run")); err != nil || n > KeepOutput*5/4+16 {
			t.Fatalf("%d bytes, %v", n, err)
		}
	}
	o, err := l.ReadOutput(t.Context(), "report", "run", 0)
	if err != nil || len(o.Text) < KeepOutput {
		t.Errorf("%d bytes, %v: want the last %d at least", len(o.Text), err, KeepOutput)
	}
}

func TestOnlyTheLastRunsKeepTheirOutput(t *testing.T) {
	l, conn := newOutputs(t)
	for i := range keepOutputs + 5 {
		printed(t, l, fmt.Sprintf("run%02d", i), 0, "x")
		if i > 0 {
			printed(t, l, "run00", int64(i), "x") // this run continues while the other runs print
		}
		time.Sleep(2 * time.Millisecond) // the times of their output must differ
	}
	printed(t, l, "run24", 1, "y")
	if n, err := redis.Int(conn.Do("ZCARD", "{baton}:job:report:output")); err != nil || n != keepOutputs {
		t.Errorf("%d runs are listed, %v", n, err)
	}
	left, err := redis.Strings(conn.Do("KEYS", "{baton}:job:report:output:*"))
	if err != nil || len(left) != keepOutputs {
		t.Errorf("outputs of %d runs, %v; want %d", len(left), err, keepOutputs)
	}
	if o, err := l.ReadOutput(t.Context(), "report", "run05", 0); err != nil || len(o.Text) != 0 {
		t.Errorf("the oldest: %q, %v", o.Text, err)
	}
	if o, err := l.ReadOutput(t.Context(), "report", "run00", 0); err != nil || len(o.Text) != keepOutputs+5 {
		t.Errorf("the one that goes on: %q, %v", o.Text, err)
	}
	if o, err := l.ReadOutput(t.Context(), "report", "run24", 0); err != nil || string(o.Text) != "xy" {
		t.Errorf("the newest: %q, %v", o.Text, err)
	}
}
