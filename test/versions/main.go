// Command versions runs the conformance suites, a sample of the crash matrix and the poison set against servers of other versions than the
// system's servers: the versions in Debian's next releases. It prints a table of servers, suites and dates, and writes the table to
// docs/reference/versions.md.
//
//	go run ./test/versions [-dir D] [-docs=false] [-suites lock,sinks] [STAND…]
//
// A stand is a Redis or Valkey, a PostgreSQL, and a MariaDB or MySQL. Its name is in the table. debootstrap unpacks each release once, into
// a directory that is not removed. Tests run in that directory by chroot, in their own mount namespace, so the command needs root and
// leaves no mount behind.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == inside {
		fmt.Fprintln(os.Stderr, "versions:", enter(os.Args[2], os.Args[3:]))
		os.Exit(1)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "versions:", err)
		os.Exit(1)
	}
}

var errRed = errors.New("a test is red: its log is named above")

func run(ctx context.Context, args []string) error {
	cache, err := os.UserCacheDir()
	if err != nil {
		return err
	}
	flags := flag.NewFlagSet("versions", flag.ContinueOnError)
	dir := flags.String("dir", filepath.Join(cache, "baton-servers"), "where the releases are unpacked and kept: 3 GB")
	docs := flags.Bool("docs", true, "write the table into docs/reference/versions.md and its translation")
	only := flags.String("suites", "", "the suites to run, with commas; all if empty. Of some nothing is written into docs/")
	if err := flags.Parse(args); err != nil {
		return err
	}
	chosen, err := chosenSuites(*only)
	if err != nil {
		return err
	}
	for _, name := range flags.Args() {
		if !slices.ContainsFunc(stands, func(s stand) bool { return s.name == name }) {
			return fmt.Errorf("there is no stand %q: %s", name, strings.Join(standNames(), ", "))
		}
	}
	var t table
	red := false
	for _, s := range stands {
		if flags.NArg() > 0 && !slices.Contains(flags.Args(), s.name) {
			continue
		}
		if err := s.prepare(ctx, *dir); err != nil {
			return fmt.Errorf("prepare %s: %w", s.name, err)
		}
		rows, err := s.run(ctx, *dir, chosen)
		if err != nil {
			return fmt.Errorf("run %s: %w", s.name, err)
		}
		for _, r := range rows {
			red = red || r.red()
		}
		t.rows = append(t.rows, rows...)
		fmt.Print(t.text())
	}
	if *docs && *only == "" {
		if err := t.write("docs/reference"); err != nil {
			return err
		}
	}
	if red {
		return errRed
	}
	return nil
}
