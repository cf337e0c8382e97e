package flush

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"baton/internal/flush/mapping"
	"baton/internal/flush/row"
)

// Config configures a pipeline.
type Config struct {
	Job    string // the name of the job in the fence, the ledger and the dead letters
	NodeID string
	Lease  time.Duration // the duration of the lease in this node's terms, which is recorded in the job's fences
	Sink   Sink
	// NewSources returns the sources of all shards. The sources deliver these inputs in this order. NewSources is called after each
	// compilation of the mapping.
	NewSources func(inputs []string) ([]Source, error)
	Mapping    mapping.Spec
	Adopt      Adopt
	// KeepDeleted is how long the database keeps deleted rows: see Keep.
	KeepDeleted time.Duration
	// Origin identifies the data that the sources read. Data of another origin makes other rows.
	Origin string
	Inputs row.Inputs // the inputs that the sources can deliver
	Policy            // the settings that sources leave to the job
	// Pending is a cheap check whether a run would find anything to do. If Pending is nil, the backlogs of the sources are counted.
	Pending func(ctx context.Context) (bool, error)
	// Release ends the work that the sources do between runs. nil means that there is no such work.
	Release func() error
	// Create allows the job to create a missing table, from the types of the mapping's columns. The Sink must then be a TableCreator.
	Create bool
	// DeadLimit is the maximum number of dead letters of one batch. 0: no limit.
	DeadLimit int
	// Lanes is the number of connections that write concurrently. Default: 1.
	Lanes int
	// OnNote, if set, receives messages for the operator during a run.
	OnNote func(text string)
	// OnExpected, if set, receives the messages that report nothing wrong. Default: OnNote.
	OnExpected func(text string)
	// NewID makes a globally unique id, such as a UUID.
	NewID func() (string, error)
	// Retry limits the repetition of transactions whose outcome is unknown.
	Retry Retry
	// OnBatch, if set, receives the statistics of every answered batch.
	OnBatch func(BatchStats)
}

// Retry limits the attempts of one transaction whose outcome is unknown.
type Retry struct {
	Attempts int           // default: 5
	Wait     time.Duration // the pause after the first attempt, which doubles each time. Default: 50 ms
	MaxWait  time.Duration // default: 1 s
	// GiveWay limits the wait of a batch that was begun before its turn. If no batch commits for this time, or for a longer time after slow
	// writes, the batch gives way. Default: 300 ms
	GiveWay time.Duration
}

// BatchStats are the statistics of one batch, for metrics.
type BatchStats struct {
	Source  string
	Applied bool          // false: the ledger already contains the batch
	Rows    int64         // rows written
	Deleted int64         // the deleted rows among them
	Dead    int64         // dead letters
	Bytes   int64         // of the records' texts
	Took    time.Duration // of the transaction, repetitions included
	// Lag is the time from the freezing of the stage in Redis to the commit. For the stage of an earlier run, Lag begins when the stage is
	// found.
	Lag time.Duration
}

// Result is the result of one run.
type Result struct {
	Rows    int64 // rows written
	Deleted int64 // the deleted rows among them
	Dead    int64 // dead letters
	Batches int64 // transactions that wrote something
	Skipped int64 // batches that the ledger already contains
}

// Pipeline is one flush job: each run writes the pending changes of its sources into one table. See the package documentation for the
// protocol.
type Pipeline struct {
	cfg      Config
	running  sync.Mutex // one run at a time
	taken    Fence      // the newest fence that this pipeline took; guarded by running
	compiled atomic.Pointer[compiled]
	ahead    ahead
	spaces   sync.Pool // *mapping.Space
	// troubles counts the batches that failed at the first attempt.
	troubles atomic.Int64
	verified time.Time // when the catalogue was read last; guarded by running
	// catalogue holds the reading that readAhead has started and learn has not used yet, or nil.
	catalogue atomic.Pointer[catalogue]
	// ignored counts the rows that the database did not write since ignoredReportedAt; guarded by running.
	ignored           int64
	ignoredReportedAt time.Time
	// toldLeft is the number of rows in the last report to an operator; guarded by running.
	toldLeft Unaccepted
	// claimed is the term and the mapping that claimRows has checked. nil makes the next run check again.
	claimed atomic.Pointer[string]
	woken   chan struct{} // contains an entry if the next Wait must return
}

// compiled is the pipeline's state that depends on the table.
type compiled struct {
	mapping  *mapping.Mapping
	sources  []Source
	vanished *vanished // nil: the job keeps vanished rows
}

// New checks a configuration and returns its pipeline. It does not connect.
func New(cfg Config) (*Pipeline, error) {
	var problems []error
	for _, need := range []struct {
		ok   bool
		what string
	}{
		{cfg.Job != "", "Job"}, {cfg.NodeID != "", "NodeID"}, {cfg.Sink != nil, "Sink"},
		{cfg.NewSources != nil, "NewSources"}, {cfg.NewID != nil, "NewID"}, {cfg.Mapping.Table != "", "Mapping.Table"},
	} {
		if !need.ok {
			problems = append(problems, fmt.Errorf("flush: job %q: %s is not set", cfg.Job, need.what))
		}
	}
	if err := cfg.complete(); err != nil {
		problems = append(problems, fmt.Errorf("flush: job %q: %w", cfg.Job, err))
	}
	cfg.Adopt.Mode = cmp.Or(cfg.Adopt.Mode, AdoptAsk)
	if cfg.Retry.Attempts <= 0 {
		cfg.Retry.Attempts = 5
	}
	if cfg.Retry.Wait <= 0 {
		cfg.Retry.Wait = 50 * time.Millisecond
	}
	if cfg.Retry.MaxWait <= 0 {
		cfg.Retry.MaxWait = time.Second
	}
	if cfg.Retry.GiveWay <= 0 {
		cfg.Retry.GiveWay = 300 * time.Millisecond
	}
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	return &Pipeline{cfg: cfg, woken: make(chan struct{}, 1)}, nil
}

// Run flushes all pending changes. The context must end with the leadership. If a run fails or its process dies, the next run, on any node,
// finishes the work of that run. An error that matches ErrFenced means that the node must step down.
//
// A job may have only one run at a time in a term. A second call on the same pipeline is refused.
func (p *Pipeline) Run(ctx context.Context, lead Leadership) (Result, error) {
	if !p.running.TryLock() {
		return Result{}, fmt.Errorf("flush: job %q is already running", p.cfg.Job)
	}
	defer p.running.Unlock()
	lanes := max(1, p.cfg.Lanes)
	r := &run{
		Pipeline: p, lead: lead,
		connections: make(chan struct{}, lanes), underway: make(chan struct{}, pagesOf(lanes)), waiting: make(chan struct{}, mostAhead),
	}
	err := r.all(ctx)
	if errors.Is(err, errTableChanged) || errors.Is(err, ErrMoved) {
		p.forget()
		err = r.all(ctx) // from the beginning, because the second attempt finds the staged changes again
	}
	if err != nil {
		p.forget()
	}
	return r.result, err
}

// Release ends the work that the sources do between runs. The next run begins this work again. The caller must call Release when the term
// has ended.
func (p *Pipeline) Release() error {
	if p.cfg.Release == nil {
		return nil
	}
	return p.cfg.Release()
}

// Backlog counts the pending changes in Redis over all sources that are Counted. It needs no database, so it works while the database is
// unavailable.
func Backlog(ctx context.Context, sources []Source) (int64, error) {
	var total int64
	for _, s := range sources {
		counted, ok := s.(Counted)
		if !ok {
			continue
		}
		n, err := counted.Backlog(ctx)
		if err != nil {
			return 0, fmt.Errorf("count the backlog of %s: %w", s.Name(), err)
		}
		total += n
	}
	return total, nil
}

// Settled reports whether a run under the leadership lead would only read pending changes. This is so if the table is known, the last run
// succeeded, and the fence belongs to this term. Without pending changes such a run has no effect and sends no request to the database.
func (p *Pipeline) Settled(lead Leadership) bool {
	if !p.running.TryLock() {
		return false
	}
	defer p.running.Unlock()
	return p.compiled.Load() != nil && p.holds(lead)
}

// holds reports whether the newest fence of this pipeline belongs to this term.
func (p *Pipeline) holds(lead Leadership) bool {
	return p.taken.Owner == lead.Owner() && p.taken.Epoch >= lead.Epoch()
}

// forget makes the next run read the catalogue again, so that baton needs no restart after a table was altered.
func (p *Pipeline) forget() {
	p.compiled.Store(nil)
	p.verified = time.Time{}
}

// compile reads the catalogue and compiles the mapping, unless the pipeline has done that already.
func (p *Pipeline) compile(ctx context.Context) (*compiled, error) {
	if c := p.compiled.Load(); c != nil {
		return c, nil
	}
	table, err := p.table(ctx)
	if err != nil {
		return nil, err
	}
	c, err := p.compileFor(table)
	if err != nil {
		return nil, err
	}
	p.compiled.Store(c)
	return c, nil
}

// table reads the catalogue. It creates a missing table if the job allows that.
func (p *Pipeline) table(ctx context.Context) (row.Table, error) {
	name := p.cfg.Mapping.Table
	table, err := p.cfg.Sink.Table(ctx, name)
	if errors.Is(err, ErrNoTable) && p.cfg.Create {
		spec, creator, wrong := p.newTable()
		if wrong != nil {
			return row.Table{}, errors.Join(err, wrong)
		}
		if err := creator.CreateTable(ctx, spec); err != nil {
			return row.Table{}, fmt.Errorf("create table %q: %w", name, err)
		}
		table, err = p.cfg.Sink.Table(ctx, name)
	}
	if err != nil {
		return row.Table{}, fmt.Errorf("read the catalogue of table %q: %w", name, err)
	}
	return table, nil
}

// newTable describes the table that the job may create.
func (p *Pipeline) newTable() (row.TableSpec, TableCreator, error) {
	creator, ok := p.cfg.Sink.(TableCreator)
	if !ok {
		return row.TableSpec{}, nil, errors.New("`schema: create` cannot be used: this database does not support it")
	}
	spec, err := mapping.NewTableSpec(p.cfg.Mapping, p.cfg.Inputs)
	return spec, creator, err
}

// compileFor matches the job with the catalogue of its table.
func (p *Pipeline) compileFor(table row.Table) (*compiled, error) {
	mapping, err := mapping.Compile(p.cfg.Mapping, table, p.cfg.Inputs)
	if err != nil {
		return nil, err
	}
	if err := p.cfg.OnMissing.Check(mapping); err != nil {
		return nil, err
	}
	sources, err := p.cfg.NewSources(mapping.Inputs())
	if err != nil {
		return nil, fmt.Errorf("open the sources of job %q: %w", p.cfg.Job, err)
	}
	vanished, err := p.compileSweep(mapping, sources)
	if err != nil {
		return nil, err
	}
	return &compiled{mapping: mapping, sources: sources, vanished: vanished}, nil
}
