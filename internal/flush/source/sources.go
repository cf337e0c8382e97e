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

// Spec says of one kind of source all that others have to know of it.
type Spec struct {
	// Kind is the part of it that needs no Redis.
	spec.Kind

	// inputs is what it delivers, and by what that is written exactly once.
	inputs func(o Options) (row.Inputs, error)
	// policy is what it leaves to its job; nil: nothing.
	policy func(o Options) (flush.Policy, error)
	// commands are those that it sends for a live key that holds this type. Whatever
	// stands there is asked for when a user's permissions are checked, in the order of a
	// flush, with K for the key, S, M and I for its stage, what is known of that, and its
	// staged index, P for the positions in a stream, R for a row.
	commands func(o Options, holds string) []string
	// idle returns the keys beside a live key of which none exists exactly while a run has
	// nothing to do there; nil: keys cannot tell.
	idle func(live string) []string
	// clusterCommands come to these in a Redis Cluster, and waitCommands where it is waited
	// for work.
	clusterCommands, waitCommands []string
	// inCluster says why a Redis Cluster cannot hold it; nil: it can.
	inCluster func(o Options) error
	open      func(s *redisconn.Store, key string, o Options, inputs []string) (flush.Source, error)
	// release ends what goes on in a store between the runs; nil: nothing does.
	release func(s *redisconn.Store, o Options) error
}

// Sources are all kinds of sources: the one list of them.
func Sources() []Spec {
	return []Spec{countersSpec, plainSpec, totalsSpec, keyTotalsSpec, hashesSpec, zsetSpec, listSpec, streamSpec, scanSpec, captureSpec}
}

// Options are what a job says of its source. What a kind of source does not have
// is ignored.
type Options struct {
	Job        string
	Type       string // one of spec.Types
	Key        string // of every shard ("views:[0-3]"), or the pattern of the rows' keys
	Changed    string // the index of what has changed
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

	// atOnce is how many shards are read at a time. They share what one may hold.
	atOnce int
}

// kind finds the kind of source that does what a job says.
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
	// Inputs are what it delivers, and by what that is written exactly once.
	Inputs row.Inputs
	// Policy is what it leaves to its job, as the job says it.
	Policy  flush.Policy
	options Options
	keys    []string // one for each shard
}

// Describe finds the source that does what a job says. It connects to nothing.
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

// Configure makes the source that of a pipeline, which opens it in s.
func (d Source) Configure(c *flush.Config, s *redisconn.Store) {
	c.Inputs, c.Policy = d.Inputs, d.Policy
	if s != nil { // else only the configuration is checked
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

// IdleKeys returns keys of which none exists exactly while a run of the source has nothing to do;
// nil: keys cannot tell.
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

// CheckCluster says why a Redis Cluster cannot hold what the source reads, if it cannot.
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

// captured are the inputs of a source whose keys capture one name.
func captured(o Options, in row.Inputs) (row.Inputs, error) {
	pattern, err := spec.ParseRowKey(o.Key)
	in.Names = append([]string{pattern.Name}, in.Names...)
	return in, err
}
