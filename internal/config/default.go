package config

import (
	"maps"
	"os"
	"slices"
	"time"

	"baton/internal/flush/source/spec"
)

// Default returns every default that does not depend on another value. WithDefaults adds the other defaults.
func Default() Config {
	return Config{
		Election: Election{
			LockKey:    "baton",
			TTL:        10 * time.Second,
			Acquire:    AcquireLua,
			LockFormat: FormatString,

			RolloutWithin: 5 * time.Minute,
		},
		HTTP:    HTTP{Listen: "127.0.0.1:9747"},
		Log:     Log{Level: "info", Format: "text"},
		History: History{Keep: 200, MaxAge: 30 * 24 * time.Hour},
		Defaults: Policy{
			TimeZone: "UTC", Timeout: time.Hour, Grace: 10 * time.Second,
			CatchUp: CatchUpLatest, Overlap: OverlapForbid, OnLost: OnLostSkip,
		},
	}
}

// WithDefaults returns c with all missing values. It sets the node's id to the host name, Redis to a Redis on this host, the timings to
// values that fit the ttl, and the values of each job.
func (c Config) WithDefaults() Config {
	if c.Node.ID == "" {
		// If there is no host name, the id stays empty, and Validate reports that the id is missing.
		c.Node.ID, _ = os.Hostname()
	}
	if c.Node.Candidate == nil {
		c.Node.Candidate = new(len(c.Jobs) > 0 || !c.fromFile())
	}
	if c.Redis.Sentinel == nil && c.Redis.Cluster == nil {
		fill(&c.Redis.URL, "redis://127.0.0.1:6379/0")
	}
	d := Default()
	if _, said := c.places["election.lock_key"]; !said { // an empty key is kept, so that Validate reports it
		fill(&c.Election.LockKey, d.Election.LockKey)
	}
	fill(&c.Election.Acquire, d.Election.Acquire)
	fill(&c.Election.LockFormat, d.Election.LockFormat)
	fill(&c.HTTP.Listen, d.HTTP.Listen)
	fill(&c.Log.Level, d.Log.Level)
	fill(&c.Log.Format, d.Log.Format)
	fill(&c.History.Keep, d.History.Keep)
	fill(&c.History.MaxAge, d.History.MaxAge)
	c.Defaults.complete(d.Defaults)

	e := &c.Election
	fill(&e.TTL, d.Election.TTL)
	fill(&e.HeartbeatInterval, min(2*time.Second, e.TTL/5))
	fill(&e.AttemptTimeout, min(time.Second, e.TTL/10))
	fill(&e.PollInterval, min(2*time.Second, e.TTL/5))
	fill(&e.Drain, min(2*time.Second, e.TTL/5))
	fill(&e.AbdicateAfter, max(30*time.Second, e.TTL))
	fill(&e.RolloutWithin, d.Election.RolloutWithin)

	c.Notify = slices.Clone(c.Notify)
	for i := range c.Notify {
		c.Notify[i].withDefaults()
	}
	c.Jobs = slices.Clone(c.Jobs)
	for i := range c.Jobs {
		c.Jobs[i].withDefaults(c.Defaults, c.Election.LockKey)
	}
	return c
}

func (f *Flush) withDefaults() {
	kind := f.From.Kind()
	for _, o := range f.options() {
		if o.word != nil {
			fill(o.word, kind.Options[o.path])
		}
	}
	if f.From.DeletesVanished() && kind.Takes(".from.max_pct") {
		fill(&f.From.MaxPct, 10)
	}
	if f.From.Type != "" {
		mode := modeUpsert
		if len(f.To.Key) == 0 && kind.Delivers == spec.Events {
			mode = modeInsert
		}
		fill(&f.To.Mode, mode)
		fill(&f.To.Schema, "verify")
		fill(&f.Lanes, 1)
		fill(&f.BatchRows, 5000)
		fill(&f.BatchBytes, 8<<20)
		fill(&f.DeadLetters.PerBatch, max(1, f.BatchRows/10))
	}
}

// complete sets the missing values of p to the values in d.
func (p *Policy) complete(d Policy) {
	fill(&p.TimeZone, d.TimeZone)
	fill(&p.CatchUp, d.CatchUp)
	fill(&p.StartingDeadline, d.StartingDeadline)
	fill(&p.Overlap, d.Overlap)
	fill(&p.MaxOverlap, d.MaxOverlap)
	fill(&p.OnLost, d.OnLost)
	fill(&p.Jitter, d.Jitter)
	fill(&p.Timeout, d.Timeout)
	fill(&p.Grace, d.Grace)
	fill(&p.LateAfter, d.LateAfter)
	fill(&p.Retry.Limit, d.Retry.Limit)
	fill(&p.Retry.Delay, d.Retry.Delay)
	fill(&p.Retry.MaxDelay, d.Retry.MaxDelay)
	if p.Retry.Limit > 0 {
		fill(&p.Retry.Delay, 10*time.Second)
		fill(&p.Retry.MaxDelay, max(10*time.Minute, p.Retry.Delay))
	}
}

func (n *Notify) withDefaults() {
	if len(n.On) == 0 {
		n.On = NotifyEvents()
	}
	fill(&n.Timeout, 10*time.Second)
	fill(&n.GiveUpAfter, time.Hour)
}

func (j *Job) withDefaults(d Policy, lock string) {
	fill(&j.Lock, lock)
	j.complete(d)
	f := &j.Flush
	f.withDefaults()
	f.Columns = maps.Clone(f.Columns)
	for name, col := range f.Columns {
		fill(&col.From, name)
		op := "set"
		if f.From.Kind().Delivers == spec.Increments && col.From == "$value" {
			op = "add" // the value of a counter is an increment, so setting it would lose the row's value
		}
		fill(&col.Op, op)
		f.Columns[name] = col
	}
}

// Margin returns how long before the end of the lease this node stops trusting its lease. The margin is 250 ms plus 1 % of the ttl. The
// margin covers a process that stops for a short time without noticing it, and clocks that run at different speeds.
func (e Election) Margin() time.Duration { return 250*time.Millisecond + e.TTL/100 }

func fill[T comparable](v *T, def T) {
	var zero T
	if *v == zero {
		*v = def
	}
}
