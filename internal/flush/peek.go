package flush

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"baton/internal/flush/mapping"
	"baton/internal/flush/row"
)

// Peeker is a Source that can show pending records without changing them.
type Peeker interface {
	Source
	// Peek reads up to n pending records. If the flush has an order, Peek uses the same order. It writes nothing to Redis, stages nothing,
	// and finishes no stage.
	Peek(ctx context.Context, n int) ([]row.Record, error)
}

// Preview is the expected result of a run, with its problems.
type Preview struct {
	Shards  []PreviewShard       `json:"shards"`
	Table   string               `json:"table"`
	DDL     string               `json:"ddl,omitzero"` // of the table that the first run would create
	Mode    mapping.Mode         `json:"mode,omitzero"`
	Columns []mapping.ColumnView `json:"columns"`
	Rows    []PreviewRow         `json:"rows"`
	// Problems stop the job, or concern records that were read.
	Problems []string `json:"problems"`
}

// PreviewShard is the preview of one of the keys that a job reads.
type PreviewShard struct {
	Name    string `json:"name"`
	Backlog *int64 `json:"backlog"` // null: not counted
	// BacklogUnknown is the reason why the backlog cannot be counted now. That is no problem.
	BacklogUnknown string `json:"backlog_unknown,omitzero"`
	Error          string `json:"error,omitzero"`
}

// PreviewRow is one row as the flush would write it, or a record that the flush would not write.
type PreviewRow struct {
	Source string `json:"source"`
	Record string `json:"record"` // in the form of a dead letter
	// Values are the values to write, one for each of Columns; null is NULL. A row to be deleted has only its key.
	Values []*string `json:"values,omitempty"`
	Delete bool      `json:"delete,omitzero"`
	Error  string    `json:"error,omitzero"` // why the record would become a dead letter
}

// Preview shows the expected result of a run with up to n records as examples. It writes
// nothing.
func (p *Pipeline) Preview(ctx context.Context, n int) Preview {
	v := Preview{Table: p.cfg.Mapping.Table, Columns: []mapping.ColumnView{}, Rows: []PreviewRow{}, Problems: []string{}}
	c, ddl, err := p.foresee(ctx)
	v.DDL = ddl
	if err != nil {
		v.problem(err)
		// The backlog can be counted although the mapping was not compiled.
		sources, err := p.cfg.NewSources(nil)
		if err != nil {
			v.problem(err)
		}
		v.count(ctx, sources)
		return v
	}
	v.Table, v.Mode, v.Columns = c.mapping.Plan().Table.Name, c.mapping.Mode(), c.mapping.Views()
	for i := range v.Columns {
		if p.cfg.Inputs.Guarantee == row.ByMark && c.mapping.Plan().Columns[i].Op == row.OpAdd {
			v.Columns[i].Op = "add its growth"
		}
	}
	v.count(ctx, c.sources)
	for _, source := range c.sources {
		if left := n - len(v.Rows); left > 0 {
			v.peek(ctx, source, c.mapping, p.cfg.OnMissing, left)
		}
	}
	return v
}

// foresee compiles the job as its next run would. It creates no table. If the run would create the table, foresee computes the table's
// catalogue.
func (p *Pipeline) foresee(ctx context.Context) (c *compiled, ddl string, err error) {
	table, err := p.cfg.Sink.Table(ctx, p.cfg.Mapping.Table)
	switch {
	case errors.Is(err, ErrNoTable) && p.cfg.Create:
		spec, creator, wrong := p.newTable()
		if wrong != nil {
			return nil, "", errors.Join(err, wrong)
		}
		if ddl, table, err = creator.DescribeTable(spec); err != nil {
			return nil, "", err
		}
	case err != nil:
		return nil, "", fmt.Errorf("read the catalogue of table %q: %w", p.cfg.Mapping.Table, err)
	}
	c, err = p.compileFor(table)
	return c, ddl, err
}

// problem adds an error to the problems; joined errors become several problems.
func (v *Preview) problem(err error) {
	for text := range strings.SplitSeq(err.Error(), "\n") { // errors.Join puts each error on its own line
		if text != "" && !slices.Contains(v.Problems, text) {
			v.Problems = append(v.Problems, text)
		}
	}
}

func (v *Preview) count(ctx context.Context, sources []Source) {
	v.Shards = make([]PreviewShard, len(sources))
	for i, source := range sources {
		v.Shards[i] = PreviewShard{Name: source.Name()}
		counted, ok := source.(Counted)
		if !ok {
			continue
		}
		n, err := counted.Backlog(ctx)
		uncounted, unknown := errors.AsType[*UncountedError](err)
		switch {
		case unknown:
			v.Shards[i].BacklogUnknown = uncounted.Why
		case err != nil:
			v.Shards[i].Error = err.Error()
			v.problem(err)
		default:
			v.Shards[i].Backlog = &n
		}
	}
}

// peek adds the rows of up to n records of a source.
func (v *Preview) peek(ctx context.Context, source Source, m *mapping.Mapping, gone mapping.OnMissing, n int) {
	peeker, ok := source.(Peeker)
	if !ok {
		return
	}
	records, err := peeker.Peek(ctx, n)
	if err != nil {
		v.problem(err)
		return
	}
	for _, r := range records[:min(n, len(records))] {
		shown := PreviewRow{Source: source.Name(), Record: row.RecordJSON(m.Inputs(), r)}
		switch converted, ok, err := gone.Row(m, r); {
		case err != nil:
			shown.Error = err.Error()
			v.problem(fmt.Errorf("%s would become a dead letter: record %s: %w", source.Name(), row.Quote(shown.Record), err))
		case !ok:
			continue // the record does not exist, and the job ignores missing records
		default:
			shown.Delete = converted.Delete
			shown.Values = m.Show(converted)
		}
		v.Rows = append(v.Rows, shown)
	}
}
