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
	// firstLeader bounds the wait for the first term.
	firstLeader = 20 * time.Second
	// drainTimeout bounds the wait for the rest to be flushed.
	drainTimeout = time.Minute
	// naiveDrain bounds the wait for the naive program's last counts.
	naiveDrain = 5 * time.Second
	// cleanUpTimeout bounds the work after an interrupt: the removal of everything that the run made.
	cleanUpTimeout = 20 * time.Second

	phaseRunning = "running"
)

// Run runs the demo until its time is over or ctx ends, audits and cleans up. An error means that there is nothing to report: the demo or
// its audit could not be run.
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

	// A name that no other run has, not even one with the same seed.
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
		keep = true // the reason is in there
	}
	return report, err
}

// errStopped: ctx ended before there was anything to report.
var errStopped = errors.New("stopped before a node led: nothing was written, and the demo's files are removed")

// unlessStopped is an error of the preparations; after ctx has ended, their failure is errStopped.
func unlessStopped(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return errStopped
	}
	return err
}

// cleanUp calls undo, even after ctx has ended, and logs its error: the error must not hold the report back.
func cleanUp(ctx context.Context, log io.Writer, undo func(context.Context) error) {
	ctx, cancel := uninterrupted(ctx)
	defer cancel()
	if err := undo(ctx); err != nil {
		_, _ = fmt.Fprintf(log, "not cleaned up: %v\n", err)
	}
}

// uninterrupted goes on for a while after ctx has ended: for calls that make something on a server of the user, or remove it. If such a
// call were interrupted, its outcome would be unknown.
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
	naive     *naiveFleet // nil: no naive program runs
	actions   *actions
	gauge     *gauge
	recording *recording   // nil: no picture is wanted
	phase     atomic.Value // string
}

// execute keeps the nodes up around traffic, drain and audit. The parts beside them end in the opposite order of their start.
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

// background starts functions that work until their context ends. The function
// that it returns ends it and waits for them; it may be called again.
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

// awaitLeader waits for the first term.
func (r *run) awaitLeader(ctx context.Context) error {
	deadline := time.Now().Add(firstLeader)
	for !r.watcher.hasLed() {
		if !pause(ctx, 20*time.Millisecond) && !r.watcher.hasLed() { // a term in the event log is reported
			return errStopped
		}
		if _, n := r.fleet.exits(); n != nil { // that soon: this cannot work
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

// traffic writes, and attacks, until the time is over or ctx ends.
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
		defer cancel() // without traffic no chaos
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

// auditNaive audits the naive program's table, increment by increment.
func (r *run) auditNaive(ctx context.Context) (*NaiveReport, error) {
	counts, err := readCounts(ctx, r.naive.database.DB, naiveQuery)
	if err != nil {
		return nil, fmt.Errorf("audit the naive program's table: %w", err)
	}
	var f findings
	f.counters(r.expected.counts, counts)
	return &NaiveReport{Lost: f.lost, Duplicated: f.duplicated}, nil
}

// clear gives the screen back.
func (r *run) clear() {
	if r.options.Screen != nil {
		_, _ = io.WriteString(r.options.Screen, "\x1b[H\x1b[2J")
	}
}
