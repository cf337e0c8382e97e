package flush

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Peeker is a Source that can show what is pending without touching it.
type Peeker interface {
	Source
	// Peek reads up to n records that are pending, those first that would be flushed
	// first where there is an order. It writes nothing to Redis, and neither stages
	// anything nor finishes what is staged.
	Peek(ctx context.Context, n int) ([]Record, error)
}

// Preview is what a run would do, and what is wrong.
type Preview struct {
	Shards  []PreviewShard  `json:"shards"`
	Table   string          `json:"table"`
	DDL     string          `json:"ddl,omitzero"` // of the table that the first run would make
	Mode    Mode            `json:"mode,omitzero"`
	Columns []PreviewColumn `json:"columns"`
	Rows    []PreviewRow    `json:"rows"`
	// Problems keep the job from running, or are of the records that were looked at.
	Problems []string `json:"problems"`
}

// PreviewShard is one of the keys that a job reads.
type PreviewShard struct {
	Name    string `json:"name"`
	Backlog int64  `json:"backlog"`
	Error   string `json:"error,omitzero"`
}

// PreviewColumn is how one column is written.
type PreviewColumn struct {
	Name    string `json:"name"`
	DBType  string `json:"db_type"`
	From    string `json:"from"`
	Read    string `json:"read"` // as what the text is read
	Op      string `json:"op"`
	Missing string `json:"missing"` // what a record without it means: error, null or keep
	Empty   string `json:"empty"`   // what an empty text means: null or as it is
	Key     bool   `json:"key"`
}

// PreviewRow is one row as it would be written, or the record that would not be.
type PreviewRow struct {
	Source string `json:"source"`
	Record string `json:"record"` // as a dead letter would have it
	// Values are as they would be written, one for each of Columns; null is NULL. Of a
	// row that is to be deleted there is the key alone.
	Values []*string `json:"values,omitempty"`
	Delete bool      `json:"delete,omitzero"`
	Error  string    `json:"error,omitzero"` // why it would become a dead letter
}

// Preview tells what a run would do now, with up to n records as examples. It writes
// nothing, neither to Redis nor to the database.
func (p *Pipeline) Preview(ctx context.Context, n int) Preview {
	v := Preview{Table: p.cfg.Mapping.Table, Columns: []PreviewColumn{}, Rows: []PreviewRow{}, Problems: []string{}}
	c, ddl, err := p.foresee(ctx)
	v.DDL = ddl
	if err != nil {
		v.problem(err)
		// What waits can be counted all the same.
		sources, err := p.cfg.NewSources(nil)
		if err != nil {
			v.problem(err)
		}
		v.count(ctx, sources)
		return v
	}
	v.Table, v.Mode = c.mapping.plan.Table.Name, c.mapping.mode
	for i, column := range c.mapping.columns {
		shown := previewColumn(column, c.mapping.plan.Columns[i], c.mapping.plan.Inputs)
		if p.cfg.Inputs.Watermark && column.op == OpAdd {
			shown.Op = "add what it has grown by"
		}
		v.Columns = append(v.Columns, shown)
	}
	v.count(ctx, c.sources)
	for _, source := range c.sources {
		if left := n - len(v.Rows); left > 0 {
			v.peek(ctx, source, c.mapping, p.cfg.OnMissing, left)
		}
	}
	return v
}

// foresee compiles the job as its next run would, and makes no table: of one that the
// run would make it knows what the catalogue would say.
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
		return nil, "", fmt.Errorf("look at table %q: %w", p.cfg.Mapping.Table, err)
	}
	c, err = p.compileFor(table)
	return c, ddl, err
}

// problem notes an error, each of several for itself.
func (v *Preview) problem(err error) {
	for text := range strings.SplitSeq(err.Error(), "\n") { // as errors.Join has them
		if text != "" && !slices.Contains(v.Problems, text) {
			v.Problems = append(v.Problems, text)
		}
	}
}

func (v *Preview) count(ctx context.Context, sources []Source) {
	v.Shards = make([]PreviewShard, len(sources))
	for i, source := range sources {
		v.Shards[i] = PreviewShard{Name: source.Name()}
		var err error
		if v.Shards[i].Backlog, err = source.Backlog(ctx); err != nil {
			v.Shards[i].Error = err.Error()
			v.problem(err)
		}
	}
}

// peek adds the rows of some records of a source.
func (v *Preview) peek(ctx context.Context, source Source, m *Mapping, gone OnMissing, n int) {
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
		row := Row{Values: make([]Value, len(m.columns))}
		shown := PreviewRow{Source: source.Name(), Record: RecordJSON(m.plan.Inputs, r)}
		switch ok, err := gone.row(m, &row, r); {
		case err != nil:
			shown.Error = err.Error()
			v.problem(fmt.Errorf("%s would become a dead letter: record %s: %w", source.Name(), quote(shown.Record), err))
		case !ok:
			continue // the record is gone, and that is ignored
		default:
			shown.Delete = row.Delete
			shown.Values = previewValues(m, row)
		}
		v.Rows = append(v.Rows, shown)
	}
}

func previewValues(m *Mapping, row Row) []*string {
	values := make([]*string, len(row.Values))
	for i, value := range row.Values {
		if row.Delete && !m.columns[i].key {
			continue
		}
		if text, ok := value.shown(); ok {
			values[i] = &text
		}
	}
	return values
}

// shown is the value as text for people; false for NULL.
func (v Value) shown() (string, bool) {
	switch v.kind {
	case KindNull:
		return "", false
	case kindAbsent:
		return "(as it is)", true
	case KindInteger:
		return strconv.FormatInt(v.Int(), 10), true
	case KindFloat:
		return strconv.FormatFloat(v.Float(), 'g', -1, 64), true
	case KindBoolean:
		return strconv.FormatBool(v.Bool()), true
	case KindTimestamp:
		return v.Time().Format(time.RFC3339Nano), true
	case KindDate:
		return v.Time().Format(time.DateOnly), true
	case KindBytes:
		return fmt.Sprintf("%q", v.str), true
	default:
		return v.str, true
	}
}

func previewColumn(c column, plan PlanColumn, inputs []string) PreviewColumn {
	shown := PreviewColumn{
		Name: c.name, DBType: plan.DBType, From: inputs[c.input], Read: c.what, Op: "set", Missing: "error", Empty: "as it is", Key: c.key,
	}
	if c.op == OpAdd {
		shown.Op = "add"
	}
	switch {
	case c.missingKeep:
		shown.Missing = "keep"
	case c.missingNull:
		shown.Missing = "null"
	}
	if c.emptyNull {
		shown.Empty = "null"
	}
	return shown
}
