package flush

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"baton/internal/flush/mapping"
	"baton/internal/flush/row"
)

// Config is what a pipeline is made of.
type Config struct {
	Job    string // fence, ledger and dead letters are kept under this name
	NodeID string
	Lease  time.Duration // of this node's terms, as the fences of the job record it
	Sink   Sink
	// NewSources makes the source of every shard, delivering these inputs in
	// this order. It is called whenever the mapping has been compiled.
	NewSources func(inputs []string) ([]Source, error)
	Mapping    mapping.Spec
	Inputs     row.Inputs // what the sources can deliver
	Policy                // what the sources leave open
	// Create: the table is made if it is missing, from the types of the mapping's columns.
	// The Sink has to be a TableCreator.
	Create bool
	// DeadLimit is the most dead letters that one batch may come to. 0: no limit.
	DeadLimit int
	// Lanes is how many connections write at the same time. Default: 1.
	Lanes int
	// OnNote, if set, is given what an operator must know of a run that goes on.
	OnNote func(text string)
	// NewID makes an id that is unique for ever, such as a UUID.
	NewID func() (string, error)
	// Retry bounds the repetition of what the database left unanswered.
	Retry Retry
	// OnBatch, if set, is given every batch that the database has answered.
	OnBatch func(BatchStats)
}

// Retry bounds the attempts at one transaction whose outcome is unknown.
type Retry struct {
	Attempts int           // default: 5
	Wait     time.Duration // after the first attempt; doubles. Default: 50 ms
	MaxWait  time.Duration // default: 1 s
}

// BatchStats is what one batch did, for metrics.
type BatchStats struct {
	Source  string
	Applied bool          // false: the ledger had it already
	Rows    int64         // rows written
	Dead    int64         // records put aside as dead letters
	Took    time.Duration // of the transaction, repetitions included
	// Lag is the time from freezing the stage in Redis to the commit; for a stage
	// that an earlier run left, from finding it.
	Lag time.Duration
}

// Result is what one run did.
type Result struct {
	Rows    int64 // rows written
	Dead    int64 // records put aside as dead letters
	Batches int64 // transactions that wrote something
	Skipped int64 // batches that the ledger had already
}

// Pipeline is one flush job: it moves what is pending in its sources into one
// table, whenever it is run. See the package documentation for the protocol.
type Pipeline struct {
	cfg      Config
	running  sync.Mutex // one run at a time
	taken    Fence      // the fence this pipeline took last; guarded by running
	compiled atomic.Pointer[compiled]
	ahead    ahead
	verified time.Time // when the catalogue was read last; guarded by running
	// ignored are rows that the database left out and that were not reported since
	// toldIgnored; guarded by running.
	ignored     int64
	toldIgnored time.Time
}

// compiled is what the pipeline knows once it has seen the table.
type compiled struct {
	mapping  *mapping.Mapping
	sources  []Source
	vanished *vanished // nil: rows that vanish are left
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
	if cfg.Retry.Attempts <= 0 {
		cfg.Retry.Attempts = 5
	}
	if cfg.Retry.Wait <= 0 {
		cfg.Retry.Wait = 50 * time.Millisecond
	}
	if cfg.Retry.MaxWait <= 0 {
		cfg.Retry.MaxWait = time.Second
	}
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	return &Pipeline{cfg: cfg}, nil
}

// Run flushes what is pending, under the leadership that ctx ends with. A run
// that fails anywhere, or whose process dies, is finished by the next run, here
// or on another node. An error that matches ErrFenced means: step down.
//
// Only one run of a job may be under way at a time and term; a second call on
// the same pipeline is refused.
func (p *Pipeline) Run(ctx context.Context, lead Leadership) (Result, error) {
	if !p.running.TryLock() {
		return Result{}, fmt.Errorf("flush: job %q is being run already", p.cfg.Job)
	}
	defer p.running.Unlock()
	r := &run{Pipeline: p, lead: lead, connections: make(chan struct{}, max(1, p.cfg.Lanes))}
	err := r.all(ctx)
	if errors.Is(err, errTableChanged) || errors.Is(err, ErrMoved) {
		p.forget()
		err = r.all(ctx) // from the top: what is staged is found again
	}
	if err != nil {
		p.forget()
	}
	return r.result, err
}

// Backlog counts the changes that wait in Redis, over all shards that are Counted. It needs no
// pipeline and no database, so that it can be watched while that is away.
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

// forget makes the next run read the catalogue anew: a table that was altered
// needs no restart.
func (p *Pipeline) forget() {
	p.compiled.Store(nil)
	p.verified = time.Time{}
}

// compile reads the catalogue, unless it is known.
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

// table reads the catalogue. A table that is missing is made, if the job may.
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
		return row.Table{}, fmt.Errorf("look at table %q: %w", name, err)
	}
	return table, nil
}

// newTable is the table that the job may make.
func (p *Pipeline) newTable() (row.TableSpec, TableCreator, error) {
	creator, ok := p.cfg.Sink.(TableCreator)
	if !ok {
		return row.TableSpec{}, nil, errors.New("`schema: create`: this database makes no tables")
	}
	spec, err := mapping.NewTableSpec(p.cfg.Mapping, p.cfg.Inputs)
	return spec, creator, err
}

// compileFor matches the job with what the catalogue says of its table.
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
