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
	Job    string // fence, ledger and dead letters are kept under this name
	NodeID string
	Lease  time.Duration // of this node's terms, as the fences of the job record it
	Sink   Sink
	// NewSources makes the sources of all shards, which deliver these inputs in this
	// order. It is called whenever the mapping has been compiled.
	NewSources func(inputs []string) ([]Source, error)
	Mapping    mapping.Spec
	Adopt      Adopt
	// Origin identifies the data that the sources read: another origin has other rows.
	Origin string
	Inputs row.Inputs // the inputs that the sources can deliver
	Policy            // the settings that sources leave to the job
	// Pending reports cheaply whether a run would find anything to do. nil: the sources'
	// backlogs are counted.
	Pending func(ctx context.Context) (bool, error)
	// Release ends the work of the sources between runs. nil: they have none.
	Release func() error
	// Create: a missing table is created, from the types of the mapping's columns. The Sink
	// has to be a TableCreator.
	Create bool
	// DeadLimit is the maximum number of dead letters of one batch. 0: no limit.
	DeadLimit int
	// Lanes is the number of connections that write concurrently. Default: 1.
	Lanes int
	// OnNote, if set, receives messages for the operator during a run.
	OnNote func(text string)
	// OnExpected, if set, receives those that tell of nothing wrong. Default: OnNote.
	OnExpected func(text string)
	// NewID makes a globally unique id, such as a UUID.
	NewID func() (string, error)
	// Retry limits the repetition of transactions whose outcome is unknown.
	Retry Retry
	// OnBatch, if set, receives the statistics of every answered batch.
	OnBatch func(BatchStats)
}

// Retry bounds the attempts at one transaction whose outcome is unknown.
type Retry struct {
	Attempts int           // default: 5
	Wait     time.Duration // after the first attempt; doubles. Default: 50 ms
	MaxWait  time.Duration // default: 1 s
	// GiveWay is the least time that a batch begun ahead of its turn waits without any commit before it gives way. Default: 300 ms
	GiveWay time.Duration
}

// BatchStats are the statistics of one batch, for metrics.
type BatchStats struct {
	Source  string
	Applied bool          // false: the ledger had it already
	Rows    int64         // rows written
	Deleted int64         // of them, rows that were deleted
	Dead    int64         // dead letters
	Bytes   int64         // of the records' texts
	Took    time.Duration // of the transaction, repetitions included
	// Lag is the time from freezing the stage in Redis to the commit; for a stage
	// that an earlier run left, from finding it.
	Lag time.Duration
}

// Result is the result of one run.
type Result struct {
	Rows    int64 // rows written
	Deleted int64 // of them, rows that were deleted
	Dead    int64 // dead letters
	Batches int64 // transactions that wrote something
	Skipped int64 // batches that the ledger had already
}

// Pipeline is one flush job: each run moves the pending changes of its sources into one table. See the package documentation for the
// protocol.
type Pipeline struct {
	cfg      Config
	running  sync.Mutex // one run at a time
	taken    Fence      // the fence this pipeline took last; guarded by running
	compiled atomic.Pointer[compiled]
	ahead    ahead
	spaces   sync.Pool // *mapping.Space
	// troubles counts the batches that could not be written at once.
	troubles atomic.Int64
	verified time.Time // when the catalogue was read last; guarded by running
	// catalogue is the catalogue being read ahead, or nil.
	catalogue atomic.Pointer[catalogue]
	// ignored counts the rows that the database left out since ignoredReportedAt; guarded by running.
	ignored           int64
	ignoredReportedAt time.Time
	// toldLeft are the rows that an operator was told of last; guarded by running.
	toldLeft Waits
	woken    chan struct{} // has an entry if the next Wait must return
}

// compiled is the pipeline's state that depends on the table.
type compiled struct {
	mapping  *mapping.Mapping
	sources  []Source
	vanished *vanished // nil: vanished rows are kept
}

// New checks a configuration and makes its pipeline. It connects to nothing yet.
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

// Run flushes everything pending; ctx ends with the leadership. If a run fails or its process
// dies, the next run, on any node, finishes its work. An error that matches ErrFenced means:
// step down.
//
// Only one run of a job may be under way at a time and term; a second call on
// the same pipeline is refused.
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
		err = r.all(ctx) // from the top: it finds the staged changes again
	}
	if err != nil {
		p.forget()
	}
	return r.result, err
}

// Release ends the work of the sources between runs; the next run begins it again. The caller calls it when the term has ended.
func (p *Pipeline) Release() error {
	if p.cfg.Release == nil {
		return nil
	}
	return p.cfg.Release()
}

// Backlog counts the pending changes in Redis over all shards that are Counted. It needs no
// pipeline and no database, so it works while the database is unavailable.
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

// Settled reports whether a run under lead would only read pending changes: the table is known, the last run succeeded, and the fence is
// this term's. Without pending changes such a run has no other effect and asks no database.
func (p *Pipeline) Settled(lead Leadership) bool {
	if !p.running.TryLock() {
		return false
	}
	defer p.running.Unlock()
	return p.compiled.Load() != nil && p.holds(lead)
}

// holds reports whether the last fence that was taken is this term's.
func (p *Pipeline) holds(lead Leadership) bool {
	return p.taken.Owner == lead.Owner() && p.taken.Epoch >= lead.Epoch()
}

// forget makes the next run read the catalogue again, so that an altered table needs no restart.
func (p *Pipeline) forget() {
	p.compiled.Store(nil)
	p.verified = time.Time{}
}

// compile reads the catalogue, unless the pipeline has compiled it already.
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

// table reads the catalogue. It creates a missing table if the job may.
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

// newTable is the table that the job may create.
func (p *Pipeline) newTable() (row.TableSpec, TableCreator, error) {
	creator, ok := p.cfg.Sink.(TableCreator)
	if !ok {
		return row.TableSpec{}, nil, errors.New("`schema: create`: this database makes no tables")
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
