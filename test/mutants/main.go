// Command mutants breaks the product on purpose, one small change at a time, and checks whether a test fails. `make mutants` runs it. The
// changes are in the files of this directory, one topic per file. Every change names the promise that it breaks and the test that notices
// it.
//
//	go run ./test/mutants [-j N] [-timeout D] [TOPIC|MUTANT…]
//
// It changes no file, because go test -overlay reads the mutated text instead of the real one. A mutant is killed if its test fails by an
// assertion; a time-out does not count. The exit code is 0 if every mutant was killed, or says why no test can kill it.
//
// A person who had not seen the product's tests wrote the mutants from its code.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("mutants", flag.ContinueOnError)
	atOnce := flags.Int("j", 2, "mutants at a time")
	timeout := flags.Duration("timeout", 5*time.Minute, "limit for the test of one mutant")
	if err := flags.Parse(args); err != nil {
		return err
	}
	all, err := parseAll(os.DirFS("test/mutants"))
	if err != nil {
		return err
	}
	all = chosen(all, flags.Args())
	if len(all) == 0 {
		return fmt.Errorf("no topic and no mutant is named %s", strings.Join(flags.Args(), " or "))
	}
	dir, err := os.MkdirTemp("", "baton-mutants-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	h := hunt{dir: dir, timeout: *timeout, counts: map[outcome]int{}}
	queue := make(chan mutant)
	var wg sync.WaitGroup
	for range *atOnce {
		wg.Go(func() {
			for m := range queue {
				h.try(ctx, m)
			}
		})
	}
	for _, m := range all {
		select {
		case queue <- m:
		case <-ctx.Done():
		}
	}
	close(queue)
	wg.Wait()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return h.verdict(len(all))
}

func chosen(all []mutant, names []string) []mutant {
	if len(names) == 0 {
		return all
	}
	return slices.DeleteFunc(all, func(m mutant) bool { return !slices.Contains(names, m.topic) && !slices.Contains(names, m.name) })
}
