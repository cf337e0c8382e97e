package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// firstLeader limits the wait for the first term.
	firstLeader = 20 * time.Second
	// drainTimeout limits the wait for the remaining flushes.
	drainTimeout = time.Minute
	// naiveDrain limits the wait for the naive program's last counts.
	naiveDrain = 5 * time.Second
	// cleanUpTimeout limits the work after an interrupt: the removal of everything that the run created.
	cleanUpTimeout = 20 * time.Second

	phaseRunning = "running"
)

// Run runs the demo until its duration is over or ctx ends. Then it audits the tables and cleans up. If it returns an error, there is
// nothing to report, because the demo or its audit could not run.
func Run(ctx context.Context, o Options) (report Report, err error) {
	if err := o.Check(); err != nil {
		return report, err
	}
	if o.Picture != "" {
		if err := openPicture(o.Picture); err != nil {
			return report, err
		}
	}
	d := &eventLog{log: o.Log}
	if o.Screen != nil {
		d.log = nil
	}
	dir, err := newWorkDir(o.TempDir)
	if err != nil {
		return report, err
	}
	keep := o.Keep
	defer func() {
		if !keep {
			dir.remove()
			return
		}
		dir.keep()
		report.Kept = dir.path
	}()

	// The name differs from the name of every other run, even of a run with the same seed.
	name := fmt.Sprintf("baton_demo_%08x", rand.Uint32())
	sc, err := sceneOf(o.Scene)
	if err != nil {
		return report, err
	}
	server, err := openServer(ctx, o, sc, dir.path, name)
	if err != nil {
		return report, unlessStopped(ctx, err)
	}
	defer server.stop()
	defer cleanUp(ctx, o.Log, server.cleanUp)
	database, err := openDatabase(ctx, o.Database, dir.path, name)
	if err != nil {
		return report, unlessStopped(ctx, err)
	}
	defer cleanUp(ctx, o.Log, database.close)

	r := &run{
		options: o, scene: sc, server: server, database: database, events: d, expected: newExpected(), watcher: newWatcher(server, d),
	}
	if !o.NoNaive && sc.marks {
		if r.naive, err = newNaiveFleet(ctx, o, dir.path, server, database, d); err != nil {
			return report, unlessStopped(ctx, err)
		}
	}
	if r.fleet, err = newFleet(o, sc, dir.path, server, database, observer{r.watcher, r.naive}); err != nil {
		return report, err
	}
	r.actions = &actions{
		program: o.Program, environ: nodeEnviron(o.Environ), server: server, fleet: r.fleet, watcher: r.watcher, events: d,
	}
	if o.Picture != "" {
		r.recording = &recording{}
		r.watcher.recording = r.recording
	}
	report, err = r.execute(ctx)
	if err != nil {
		r.clear()
	}
	switch {
	case errors.Is(err, errStopped):
	case err != nil:
		keep = true
		err = fmt.Errorf("%w\nlogs and configuration of the nodes: %s", err, dir.path)
	case !report.Clean():
		keep = true // the logs in the directory contain the reason
	}
	return report, err
}

// errStopped means that ctx ended before there was anything to report.
var errStopped = errors.New("stopped before a node led: nothing was written, and the demo's files are removed")

// unlessStopped returns the error err, which comes from the preparations of the run. If ctx has ended, it returns errStopped instead.
func unlessStopped(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return errStopped
	}
	return err
}

// cleanUp calls the function undo, even after ctx has ended. It only logs an error of undo, because this error must not prevent the report.
func cleanUp(ctx context.Context, log io.Writer, undo func(context.Context) error) {
	ctx, cancel := uninterrupted(ctx)
	defer cancel()
	if err := undo(ctx); err != nil {
		_, _ = fmt.Fprintf(log, "the demo was not cleaned up: %v\n", err)
	}
}

// uninterrupted returns a context that stays valid for a short time after ctx has ended. It is for calls that create or remove objects on a
// user's server: after an interruption the outcome of such a call would be unknown.
func uninterrupted(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), cleanUpTimeout)
}

// run is one run of the demo.
type run struct {
	options   Options
	scene     scene
	server    *server
	database  *database
	events    *eventLog
	expected  *expected
	watcher   *watcher
	fleet     *fleet
	naive     *naiveFleet // nil if no naive program runs
	actions   *actions
	gauge     *gauge
	recording *recording   // nil if no picture is wanted
	phase     atomic.Value // a string
}

// execute runs the traffic, the drain and the audit. The nodes run during all of them. The other parts of the run are stopped in the
// reverse order of their start.
func (r *run) execute(ctx context.Context) (Report, error) {
	report := Report{Seed: r.options.Seed}
	r.phase.Store("starting")
	r.gauge = newGauge(r.database, r.naive, r.expected)
	r.gauge.recording = r.recording
	v := &view{
		options: r.options, scene: r.scene, server: r.server, database: r.database, fleet: r.fleet, watcher: r.watcher,
		gauge: r.gauge, events: r.events, started: time.Now(), phase: func() string { return r.phase.Load().(string) },
	}
	stopWatching := background(ctx, r.watcher.run, r.gauge.run, v.run)
	defer stopWatching()
	work := []func(context.Context){r.fleet.run}
	if r.naive != nil {
		work = append(work, r.naive.run)
	}
	stopNodes := background(ctx, work...)
	defer stopNodes()

	if err := r.awaitLeader(ctx); err != nil {
		return report, err
	}
	started := time.Now()
	r.recording.begin(started)
	faults, err := r.traffic(ctx)
	if err != nil {
		return report, err
	}
	ended := time.Now()
	r.recording.end(ended)
	report.Duration = rounded(ended.Sub(started))
	drained := r.drain(ctx)
	r.phase.Store("stopping")
	stopNodes()
	_, terms, times, _ := r.watcher.state()
	report.Terms, report.Failover, report.Faults = terms, summarize(times), faults
	report.NodeExits, _ = r.fleet.exits()
	stopWatching()
	r.clear()

	found, err := audit(context.WithoutCancel(ctx), r.database.DB, r.expected)
	if err != nil {
		return report, err
	}
	report.Written, report.Flushed = r.expected.total(), found.flushed
	report.Lost, report.Duplicated, report.Findings = found.lost, found.duplicated, found.examples
	if r.naive != nil {
		if report.Naive, err = r.auditNaive(context.WithoutCancel(ctx)); err != nil {
			return report, err
		}
	}
	if drained != nil && !report.Clean() {
		report.Findings = append(report.Findings, drained.Error())
	}
	if r.recording != nil {
		if err := os.WriteFile(r.options.Picture, []byte(r.recording.picture(report)), 0o600); err != nil {
			return report, fmt.Errorf("write the picture: %w", err)
		}
	}
	return report, nil
}

// background starts functions that work until their context ends. The returned function ends that context and waits for the functions. It
// may be called more than once.
func background(ctx context.Context, work ...func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	for _, f := range work {
		wg.Go(func() { f(ctx) })
	}
	return func() {
		cancel()
		wg.Wait()
	}
}

// awaitLeader waits until a node leads for the first time.
func (r *run) awaitLeader(ctx context.Context) error {
	deadline := time.Now().Add(firstLeader)
	for !r.watcher.hasLed() {
		if !pause(ctx, 20*time.Millisecond) && !r.watcher.hasLed() { // if the event log contains a term, there was a leader
			return errStopped
		}
		if _, n := r.fleet.exits(); n != nil { // a node that ends so early cannot work
			return fmt.Errorf("%s ended at once; its log ends with:\n%s", n.id, tail(n.logFile()))
		}
		if time.Now().After(deadline) {
			_, _, _, trouble := r.watcher.state()
			return errors.Join(fmt.Errorf("after %v no node leads; the log of node-1 ends with:\n%s", firstLeader,
				tail(r.fleet.nodes[0].logFile())), trouble)
		}
	}
	return nil
}

// traffic writes to Redis and attacks the leaders. It stops when the duration of the demo is over or ctx ends.
func (r *run) traffic(ctx context.Context) (faults, error) {
	if r.options.Duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, r.options.Duration)
		defer cancel()
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r.phase.Store(phaseRunning)
	var failed error
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer cancel() // chaos ends together with the traffic
		g := newGenerator(r.server, r.scene, r.expected, r.options.Seed, r.options.Rate)
		g.naive = r.naive != nil
		failed = g.run(ctx)
	}()
	var faults faults
	chaos := make(chan struct{})
	go func() {
		defer close(chaos)
		faults = newChaos(r.options.Chaos, r.options.Seed, r.actions).run(ctx)
	}()
	if r.options.Keys != nil {
		r.actions.run(ctx, r.options.Keys, cancel)
	}
	<-done
	<-chaos
	r.actions.wg.Wait()
	return faults, failed
}

// drain waits until the tables hold all writes, or fails after a time limit.
func (r *run) drain(ctx context.Context) error {
	r.phase.Store("flushing the rest")
	r.events.note("the traffic has stopped; waiting for the rest to be flushed")
	since := time.Now()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
	defer cancel()
	for {
		now := r.gauge.reading()
		if now.trouble == nil && now.at.After(since) && now.waiting == (amount{}) {
			break
		}
		if !pause(ctx, 100*time.Millisecond) {
			return errors.Join(fmt.Errorf("%v after the end of the traffic %d increments and %d rows were not in the tables", drainTimeout,
				now.waiting.Counters, now.waiting.Hashes), now.trouble)
		}
	}
	if r.naive == nil {
		return nil
	}
	ctx, cancel = context.WithTimeout(ctx, naiveDrain)
	defer cancel()
	if err := r.naive.drained(ctx); err != nil {
		r.events.note("the naive program: %v", err)
	}
	return nil
}

// auditNaive audits the naive program's table. It counts the missing and the surplus increments.
func (r *run) auditNaive(ctx context.Context) (*NaiveReport, error) {
	counts, err := readCounts(ctx, r.naive.database.DB, naiveQuery)
	if err != nil {
		return nil, fmt.Errorf("audit the naive program's table: %w", err)
	}
	var f findings
	f.counters(r.expected.counts, counts)
	return &NaiveReport{Lost: f.lost, Duplicated: f.duplicated}, nil
}

// clear clears the screen.
func (r *run) clear() {
	if r.options.Screen != nil {
		_, _ = io.WriteString(r.options.Screen, "\x1b[H\x1b[2J")
	}
}
