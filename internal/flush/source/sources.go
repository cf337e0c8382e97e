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

// Spec describes one kind of source, such as streams, to all other packages.
type Spec struct {
	// Kind is the part of the description that needs no Redis.
	spec.Kind

	// inputs returns the possible inputs of a record, and the guarantee for writing each record exactly once.
	inputs func(o Options) (row.Inputs, error)
	// policy returns the job's policy. nil means that the kind has no policy.
	policy func(o Options) (flush.Policy, error)
	// commands returns the commands that the source sends for a live key whose value has the type in holds. They are in the order in which
	// a flush sends them. "baton doctor" checks that the user may run them. K stands for the key, S for its stage, M for the stage's meta,
	// and I for its staged index. P stands for the positions in a stream, and R for a row.
	commands func(o Options, holds string) []string
	// idle returns the live key and the keys next to it. A run has nothing to do for the live key exactly if all of these keys are missing.
	// idle is nil if missing keys do not show that a run has nothing to do.
	idle func(live string) []string
	// clusterCommands are further commands for a Redis Cluster, and waitCommands for a job that waits for changes.
	clusterCommands, waitCommands []string
	// inCluster returns the reason why a Redis Cluster cannot hold the source. nil means that it always can.
	inCluster func(o Options) error
	open      func(s *redisconn.Store, key string, o Options, inputs []string) (flush.Source, error)
	// release ends the work that the source does in a store between runs. nil means that there is no such work.
	release func(s *redisconn.Store, o Options) error
}

// Sources returns the complete descriptions of all kinds of sources.
func Sources() []Spec {
	return []Spec{countersSpec, plainSpec, totalsSpec, keyTotalsSpec, hashesSpec, zsetSpec, listSpec, streamSpec, scanSpec, captureSpec}
}

// Options are a job's settings for its source. A kind of source ignores settings that do not belong to it.
type Options struct {
	Job        string
	Type       string // one of spec.Types
	Key        string // the key of every shard ("views:[0-3]"), or the pattern of the rows' keys
	Changed    string // the index of changes
	Watermark  bool
	OnMissing  string         // with an index of changes, or for a capture: "delete" (default), "ignore" or "null"
	OnDecrease string         // for totals: "stop" (default), "subtract" or "restart"
	Vanished   string         // for a scan: "ignore" (default) or "delete"
	OnFlush    string         // for a capture: see capture.Options
	MaxPct     int            // see flush.Policy.VanishedPct and RepairPct. Default: 10
	Value      string         // see ScanOptions
	OnGap      string         // see StreamOptions
	Start      string         // see StreamOptions
	Retain     *time.Duration // see StreamOptions
	Rows       int            // the desired rows of a page or part. Default 5000.
	Bytes      int            // the desired bytes of a page or part. Default 8 MiB.
	Lanes      int            // Default 1.
	// RemoveEvery has the same meaning as in IndexedOptions.
	RemoveEvery time.Duration

	// atOnce is the number of shards that are read at the same time. These shards share the memory budget.
	atOnce int
}

// kind returns the kind of source that the job's settings select.
func (o Options) kind() (Spec, error) {
	kind, ok := spec.Find(o.Type, o.Key, o.Watermark)
	if !ok {
		return Spec{}, fmt.Errorf("no source is of type %q: use one of %s", o.Type, strings.Join(spec.Types(), ", "))
	}
	all := Sources()
	return all[slices.IndexFunc(all, func(s Spec) bool { return s.Name == kind.Name })], nil
}

// Source is a job's source before it is opened.
type Source struct {
	Spec
	// Inputs are the possible inputs of a record, and the guarantee for writing each record exactly once.
	Inputs row.Inputs
	// Policy is the job's policy.
	Policy  flush.Policy
	options Options
	keys    []string // one for each shard
}

// Describe returns the source that a job's settings select. It does not connect.
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

// Configure adds the source to the configuration of a pipeline. The pipeline opens the source in s.
func (d Source) Configure(c *flush.Config, s *redisconn.Store) {
	c.Inputs, c.Policy = d.Inputs, d.Policy
	if s != nil { // nil: the configuration is only checked
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

// IdleKeys returns keys that show whether a run has work: a run has nothing to do exactly if all of these keys are missing. It returns nil
// if no keys show that.
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

// CheckCluster returns the reason why a Redis Cluster cannot hold the keys of the source, or nil.
func (d Source) CheckCluster() error {
	if d.inCluster == nil {
		return nil
	}
	return d.inCluster(d.options)
}

// Open returns the source of every shard. Each record of a source has the given inputs, in the given order. Open does not connect.
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

// captured adds the name in the key pattern, such as "id" in "user:<id>", to the possible inputs.
func captured(o Options, in row.Inputs) (row.Inputs, error) {
	pattern, err := spec.ParseRowKey(o.Key)
	in.Names = append([]string{pattern.Name}, in.Names...)
	return in, err
}
