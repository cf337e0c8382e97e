// Package tasks turns the configuration of a job into the parts that do the job's work.
package tasks

import (
	"cmp"
	"fmt"

	"baton/internal/config"
	"baton/internal/daemon/site"
	"baton/internal/flush"
	"baton/internal/flush/mapping"
	"baton/internal/flush/source"
	"baton/internal/flush/verify"
	"baton/internal/redisconn"
)

// Flush returns the configuration of a flush, made from the configuration of its job. The caller adds the sink, the node and the
// reports.
func Flush(j config.Job, store *redisconn.Store) (flush.Config, error) {
	f := j.Flush
	source, err := Source(j)
	if err != nil {
		return flush.Config{}, err
	}
	to := mapping.Spec{
		Table: f.To.Table, Key: f.To.Key, Mode: mapping.Mode(f.To.Mode), DedupeKey: f.To.DedupeKey,
		DeleteWhen: f.To.DeleteWhen, Generation: f.To.Generation,
	}
	for name, col := range f.Columns {
		if to.Columns == nil {
			to.Columns = map[string]mapping.ColumnSpec{}
		}
		to.Columns[name] = mapping.ColumnSpec{
			From: col.From, Op: col.Op, Type: col.Type, Format: col.Format, Missing: col.Missing, Empty: col.Empty, Place: col.Place,
		}
	}
	c := flush.Config{
		Job: j.Name, Mapping: to, NewID: site.NewID,
		Origin: fmt.Sprintf("store %q ", f.From.Store),
		Create: f.To.Schema == "create", DeadLimit: f.DeadLetters.PerBatch, Lanes: f.Lanes,
		KeepDeleted: f.To.KeepDeleted,
	}
	if j.Flush.From.Kind().Takes(adopts) {
		c.Adopt = flush.Adopt{Mode: flush.AdoptMode(f.To.Adopt), Differ: verify.Differ{}}
	}
	source.Configure(&c, store)
	return c, nil
}

// adopts is the name of a setting that only some types of jobs have. Such a job asks before it changes or deletes rows that it never wrote.
const adopts = ".to.adopt"

// Source describes the source of a flush job.
func Source(j config.Job) (source.Source, error) {
	return source.Describe(options(j))
}

// options returns the settings of a job's source.
func options(j config.Job) source.Options {
	from := j.Flush.From
	o := source.Options{
		Job: j.Name, Type: from.Type, Key: from.Key, Changed: from.Changed, Watermark: from.Mode == config.ModeWatermark,
		OnMissing: from.OnMissing, OnDecrease: from.OnDecrease, Vanished: from.Vanished, MaxPct: from.MaxPct,
		OnFlush: from.OnFlush, Value: cmp.Or(from.Value, "hash"), OnGap: from.OnGap, Start: from.Start,
		Rows: j.Flush.BatchRows, Bytes: j.Flush.BatchBytes, Lanes: j.Flush.Lanes,
	}
	if from.Retain > 0 {
		o.Retain = &from.Retain
	}
	return o
}
