package source

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"baton/internal/flush"
	"baton/internal/flush/row"
	"baton/internal/flush/source/spec"
	"baton/internal/flush/source/staging"
	"baton/internal/redisconn"
)

// Spec describes one kind of source to all other packages.
type Spec struct {
	// Kind is the part of it that needs no Redis.
	spec.Kind

	// inputs are the possible inputs of a record, and the guarantee for writing them exactly once.
	inputs func(o Options) (row.Inputs, error)
	// policy is the job's choice of a policy; nil: the job has none.
	policy func(o Options) (flush.Policy, error)
	// commands are the commands that it sends for a live key that holds this type. doctor checks the user's permissions for them, in the
	// order of a flush. K stands for the key; S, M and I for its stage, the stage's meta, and its staged index; P for the positions in a
	// stream; R for a row.
	commands func(o Options, holds string) []string
	// idle returns keys beside a live key: if all are missing, and only then, a run has nothing to do there; nil: keys cannot tell.
	idle func(live string) []string
	// clusterCommands are added in a Redis Cluster, waitCommands where the job waits for work.
	clusterCommands, waitCommands []string
	// inCluster reports why a Redis Cluster cannot hold the source; nil: it always can.
	inCluster func(o Options) error
	open      func(s *redisconn.Store, key string, o Options, inputs []string) (flush.Source, error)
	// release ends the source's work in a store between runs; nil: there is no such work.
	release func(s *redisconn.Store, o Options) error
}

// Sources are all kinds of sources: this is their one list.
func Sources() []Spec {
	return []Spec{countersSpec, plainSpec, totalsSpec, keyTotalsSpec, hashesSpec, zsetSpec, listSpec, streamSpec, scanSpec, captureSpec}
}

// Options are a job's settings of its source. A kind of source ignores settings that it does not have.
type Options struct {
	Job        string
	Type       string // one of spec.Types
	Key        string // of every shard ("views:[0-3]"), or the pattern of the rows' keys
	Changed    string // the index of changes
	Watermark  bool
	OnMissing  string         // with an index of changes, or of a capture: delete, which is the default, ignore or null
	OnDecrease string         // of totals: stop, which is the default, subtract or restart
	Vanished   string         // of a scan: ignore, which is the default, or delete
	OnFlush    string         // of a capture: see capture.Options
	MaxPct     int            // see flush.Policy.VanishedPct and RepairPct. Default: 10
	Value      string         // see ScanOptions
	OnGap      string         // see StreamOptions
	Start      string         // see StreamOptions
	Retain     *time.Duration // see StreamOptions
	Rows       int            // the aim for the rows of a page or part. Default 5000.
	Bytes      int            // the aim for their bytes. Default 8 MiB.
	Lanes      int            // Default 1.
	// RemoveEvery is as in IndexedOptions.
	RemoveEvery time.Duration

	// atOnce is how many shards are read at a time. They share the memory budget.
	atOnce int
}

// kind finds the kind of source for the job's settings.
func (o Options) kind() (Spec, error) {
	kind, ok := spec.Find(o.Type, o.Key, o.Watermark)
	if !ok {
		return Spec{}, fmt.Errorf("no source is of type %q: it is one of %s", o.Type, strings.Join(spec.Types(), ", "))
	}
	all := Sources()
	return all[slices.IndexFunc(all, func(s Spec) bool { return s.Name == kind.Name })], nil
}

// Source is the source of a job before it is opened.
type Source struct {
	Spec
	// Inputs are the possible inputs of a record, and the guarantee for writing them exactly once.
	Inputs row.Inputs
	// Policy is the job's choice of a policy.
	Policy  flush.Policy
	options Options
	keys    []string // one for each shard
}

// Describe finds the source for a job's settings. It connects to nothing.
func Describe(o Options) (Source, error) {
	kind, err := o.kind()
	if err != nil {
		return Source{}, err
	}
	d := Source{Spec: kind, options: o, keys: []string{o.Key}}
	if !kind.Keyed() {
		if d.keys, err = spec.ExpandKey(o.Key); err != nil {
			return Source{}, err
		}
	}
	if d.Inputs, err = kind.inputs(o); err == nil && kind.policy != nil {
		d.Policy, err = kind.policy(o)
	}
	return d, err
}

// Configure puts the source into the configuration of a pipeline, which opens it in s.
func (d Source) Configure(c *flush.Config, s *redisconn.Store) {
	c.Inputs, c.Policy = d.Inputs, d.Policy
	if s != nil { // nil: only check the configuration
		c.Origin += fmt.Sprintf("db %d key %q value %q", s.Database(), d.options.Key, d.options.Value)
	}
	if keys := d.IdleKeys(); len(keys) > 0 {
		c.Pending = func(ctx context.Context) (bool, error) { return staging.AnyExists(ctx, s, keys) }
	}
	if d.release != nil {
		c.Release = func() error { return d.release(s, d.options) }
	}
	c.NewSources = func(inputs []string) ([]flush.Source, error) { return d.Open(s, inputs) }
}

// IdleKeys returns keys: if all are missing, and only then, a run of the source has nothing to do; nil: keys cannot tell.
func (d Source) IdleKeys() (keys []string) {
	if d.idle == nil {
		return nil
	}
	lives, _ := d.live()
	for _, live := range lives {
		keys = append(keys, d.idle(ofOne(live))...)
	}
	return keys
}

// CheckCluster reports why a Redis Cluster cannot hold the keys of the source, or nil.
func (d Source) CheckCluster() error {
	if d.inCluster == nil {
		return nil
	}
	return d.inCluster(d.options)
}

// Open makes the source of every shard, delivering these inputs in this order. It does
// not connect.
func (d Source) Open(s *redisconn.Store, inputs []string) ([]flush.Source, error) {
	var sources []flush.Source
	o := d.options
	o.atOnce = flush.ShardsAtOnce(len(d.keys), o.Lanes)
	for _, key := range d.keys {
		source, err := d.open(s, key, o, inputs)
		if err != nil {
			return nil, err
		}
		sources = append(sources, source)
	}
	return sources, nil
}

// captured are the possible inputs of a source whose keys capture one name.
func captured(o Options, in row.Inputs) (row.Inputs, error) {
	pattern, err := spec.ParseRowKey(o.Key)
	in.Names = append([]string{pattern.Name}, in.Names...)
	return in, err
}
