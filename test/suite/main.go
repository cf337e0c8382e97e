// Command suite runs the tests of this module for make. It runs several packages at a time in its own directories, and prints progress and
// a summary. It leaves no process and no directory behind.
//
//	go run ./test/suite [-p N] [-timeout D] quick|race|long|crash [PACKAGE…]
//
// The exit code is 0 if every test passed, 1 if one failed, 130 if a signal ended the run.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"
)

func main() {
	ctx, stop := interruptible()
	code, err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "suite:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// interruptible returns a context that ends on a signal. It skips signals that this process was started to ignore, so that the suite
// continues under nohup.
func interruptible() (context.Context, context.CancelFunc) {
	var signals []os.Signal
	for _, s := range []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM} {
		if !signal.Ignored(s) {
			signals = append(signals, s)
		}
	}
	return signal.NotifyContext(context.Background(), signals...)
}

type options struct {
	plan     plan
	packages []string // packages of the plan to run; all if empty
	parallel int      // number of packages at a time
	timeout  time.Duration
}

func run(ctx context.Context, args []string) (code int, err error) {
	o, err := parse(args)
	if err != nil {
		return 2, err
	}
	packages, err := o.plan.packages(ctx, o.packages)
	if err != nil {
		return 1, err
	}
	s := newSuite(o)
	return s.run(ctx, goTest{packages: packages})
}

func parse(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("suite", flag.ContinueOnError)
	// The default is one package more than there are cores, because most packages wait for servers half of the time.
	flags.IntVar(&o.parallel, "p", runtime.NumCPU()+1, "packages at a time")
	flags.DurationVar(&o.timeout, "timeout", 0, "limit for one package; 0: the plan's")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() == 0 {
		return o, fmt.Errorf("name a plan: quick, race, long or crash")
	}
	p, ok := plans[flags.Arg(0)]
	if !ok {
		return o, fmt.Errorf("there is no plan %q: quick, race, long or crash", flags.Arg(0))
	}
	o.plan, o.packages = p, flags.Args()[1:]
	if o.timeout == 0 {
		o.timeout = p.timeout
	}
	return o, nil
}
