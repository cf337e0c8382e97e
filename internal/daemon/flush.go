package daemon

import (
	"strings"

	"go.uber.org/zap"

	"baton/internal/config"
	"baton/internal/flush"
	"baton/internal/redisstore"
	"baton/internal/status"
)

// flushConfig is a flush job as the configuration has it, but for what it is run with:
// sink, node and reports.
func flushConfig(j config.Job, store *redisstore.Store) (flush.Config, error) {
	f := j.Flush
	sources, inputs, err := flushSources(j, store)
	if err != nil {
		return flush.Config{}, err
	}
	spec := flush.MappingSpec{
		Table: f.To.Table, Key: f.To.Key, Mode: flush.Mode(f.To.Mode), DedupeKey: f.To.DedupeKey,
		DeleteWhen: f.To.DeleteWhen, Generation: f.To.Generation,
	}
	for name, col := range f.Columns {
		if spec.Columns == nil {
			spec.Columns = map[string]flush.ColumnSpec{}
		}
		spec.Columns[name] = flush.ColumnSpec{From: col.From, Op: col.Op, Type: col.Type, Format: col.Format, Missing: col.Missing, Empty: col.Empty}
	}
	missing := flush.MissingIgnore // nothing is ever missing, but from hashes
	if f.From.Type == config.Hashes {
		missing = flush.OnMissing(f.From.OnMissing)
	}
	return flush.Config{
		Job: j.Name, NewSources: sources, Mapping: spec, Inputs: inputs, NewID: newID, OnMissing: missing,
		OnDecrease: flush.OnDecrease(f.From.OnDecrease), BatchRows: f.BatchRows, Vanished: f.From.Vanished, MaxPct: f.From.MaxPct,
		Create: f.To.Schema == "create", DeadLimit: f.DeadLetters.PerBatch, Lanes: f.Lanes,
	}, nil
}

// newPipeline makes the pipeline of a flush job. It connects to nothing yet.
func newPipeline(c flush.Config, nodeID string, sink flush.Sink, done *tally, metrics *status.Metrics, log *zap.Logger) (*flush.Pipeline, error) {
	c.NodeID, c.Sink = nodeID, sink
	c.OnBatch = func(b flush.BatchStats) {
		done.add(b)
		metrics.FlushRows(c.Job, "written", b.Rows)
		metrics.FlushRows(c.Job, "dead", b.Dead)
		metrics.FlushBatch(c.Job, b.Took)
	}
	c.OnNote = func(text string) { log.Warn(text, zap.String("job", c.Job)) }
	return flush.New(c)
}

// sourcesOf makes a job's sources, once the inputs that its mapping wants are known.
type sourcesOf func(inputs []string) ([]flush.Source, error)

// flushSources tells how the sources of a flush are made, and what they can deliver.
func flushSources(j config.Job, store *redisstore.Store) (sourcesOf, flush.Inputs, error) {
	from := j.Flush.From
	switch from.Type {
	case config.Counters:
		return counterSources(j, store)
	case config.Hashes:
		row, err := flush.ParseRowKey(from.Key)
		return one(func(inputs []string) (flush.Source, error) {
			return redisstore.NewHashes(store, redisstore.HashesOptions{Job: j.Name, Key: from.Key, Changed: from.Changed,
				Inputs: inputs, PageRows: j.Flush.BatchRows, Lanes: j.Flush.Lanes})
		}), flush.Inputs{Names: []string{row.Name}, Fields: true}, err
	case config.List:
		sources, err := each(from.Key, func(key string, inputs []string) (flush.Source, error) {
			return redisstore.NewList(store, redisstore.ListOptions{Job: j.Name, Key: key, Inputs: inputs, PartRows: j.Flush.BatchRows})
		})
		return sources, flush.Inputs{Names: []string{flush.InputValue}, Fields: true, Ledger: true}, err
	case config.Stream:
		sources, err := each(from.Key, func(key string, inputs []string) (flush.Source, error) {
			o := redisstore.StreamOptions{Job: j.Name, Key: key, Inputs: inputs, PageRows: j.Flush.BatchRows, OnGap: from.OnGap, Start: from.Start}
			if from.Retain > 0 {
				o.Retain = &from.Retain
			}
			return redisstore.NewStream(store, o)
		})
		return sources, flush.Inputs{Names: []string{flush.InputID}, Fields: true, Ledger: true, Position: true}, err
	default:
		inputs, err := redisstore.ScanInputs(from.Key, from.Value)
		return one(func(wanted []string) (flush.Source, error) {
			return redisstore.NewScan(store, redisstore.ScanOptions{Job: j.Name, Key: from.Key, Value: from.Value,
				Inputs: wanted, PageRows: j.Flush.BatchRows, Lanes: j.Flush.Lanes})
		}), inputs, err
	}
}

// counterSources are hashes of counters or counters with a key each, of increments or
// of totals.
func counterSources(j config.Job, store *redisstore.Store) (sourcesOf, flush.Inputs, error) {
	from := j.Flush.From
	inputs := flush.Inputs{Names: []string{flush.InputField, flush.InputValue}, Ledger: true, Watermark: from.Mode == config.ModeWatermark}
	if strings.Contains(from.Key, "<") {
		row, err := flush.ParseRowKey(from.Key)
		inputs.Names[0] = row.Name
		return one(func(wanted []string) (flush.Source, error) {
			if inputs.Watermark {
				return redisstore.NewTotals(store, redisstore.TotalsOptions{Job: j.Name, Key: from.Key, Inputs: wanted, PageRows: j.Flush.BatchRows})
			}
			return redisstore.NewPlainCounters(store, redisstore.PlainCountersOptions{Job: j.Name, Key: from.Key, Changed: from.Changed,
				Inputs: wanted, PartRows: j.Flush.BatchRows, Lanes: j.Flush.Lanes})
		}), inputs, err
	}
	sources, err := each(from.Key, func(key string, wanted []string) (flush.Source, error) {
		if inputs.Watermark {
			return redisstore.NewTotals(store, redisstore.TotalsOptions{Job: j.Name, Key: key, Inputs: wanted, PageRows: j.Flush.BatchRows})
		}
		return redisstore.NewCounters(store, redisstore.CountersOptions{Job: j.Name, Key: key,
			Inputs: wanted, PartRows: j.Flush.BatchRows, Lanes: j.Flush.Lanes})
	})
	return sources, inputs, err
}

// one is a job with a single source.
func one(open func(inputs []string) (flush.Source, error)) sourcesOf {
	return func(inputs []string) ([]flush.Source, error) {
		s, err := open(inputs)
		if err != nil {
			return nil, err
		}
		return []flush.Source{s}, nil
	}
}

// each is a job with a source for every key that a pattern stands for.
func each(pattern string, open func(key string, inputs []string) (flush.Source, error)) (sourcesOf, error) {
	keys, err := flush.ExpandKey(pattern)
	return func(inputs []string) ([]flush.Source, error) {
		var sources []flush.Source
		for _, key := range keys {
			s, err := open(key, inputs)
			if err != nil {
				return nil, err
			}
			sources = append(sources, s)
		}
		return sources, nil
	}, err
}
