package config

import (
	"maps"
	"strings"
	"time"
)

// Setting is one value that a flag and an environment variable can set.
type Setting struct {
	Flag  string // without dashes
	Env   string // BATON_…
	Path  string // in the file
	Usage string // one line; the word in backquotes names the argument
	set   func(*Config, string) error
}

// Settings lists all of them in the order of the help text.
func Settings() []Setting {
	text := func(field func(*Config) *string) func(*Config, string) error {
		return func(c *Config, s string) error { *field(c) = s; return nil }
	}
	duration := func(field func(*Config) *time.Duration) func(*Config, string) error {
		return func(c *Config, s string) (err error) {
			d, err := parseDuration(s)
			if err == nil {
				*field(c) = d
			}
			return err
		}
	}
	list := []Setting{
		{Flag: "redis", Path: "redis.url", Usage: "`url` of Redis, instead of the file's url, sentinel or cluster: redis://host:port/db",
			set: setURL},
		{Flag: "lock-key", Path: "election.lock_key", Usage: "Redis `key` that the nodes contend for",
			set: text(func(c *Config) *string { return &c.Election.LockKey })},
		{Flag: "ttl", Path: "election.ttl", Usage: "lease, a `duration` of at least 1s",
			set: duration(func(c *Config) *time.Duration { return &c.Election.TTL })},
		{Flag: "heartbeat-interval", Path: "election.heartbeat_interval",
			Usage: "`duration` between renewals (default a fifth of the ttl, at most 2s)",
			set:   duration(func(c *Config) *time.Duration { return &c.Election.HeartbeatInterval })},
		{Flag: "poll-interval", Path: "election.poll_interval",
			Usage: "`duration` between a standby's polls of the lock (default a fifth of the ttl, at most 2s)",
			set:   duration(func(c *Config) *time.Duration { return &c.Election.PollInterval })},
		{Flag: "node-id", Path: "node.id", Usage: "`name` of this node (default the host name)",
			set: text(func(c *Config) *string { return &c.Node.ID })},
		{Flag: "http", Path: "http.listen", Usage: "`host:port` of the status page, or off",
			set: text(func(c *Config) *string { return &c.HTTP.Listen })},
		{Flag: "log-level", Path: "log.level", Usage: "`level`: debug, info, warn or error",
			set: text(func(c *Config) *string { return &c.Log.Level })},
		{Flag: "log-format", Path: "log.format", Usage: "`format`: text or json",
			set: text(func(c *Config) *string { return &c.Log.Format })},
	}
	for i := range list {
		list[i].Env = "BATON_" + strings.ToUpper(strings.ReplaceAll(list[i].Flag, "-", "_"))
	}
	return list
}

// setURL names the one server to use, and replaces any other deployment in the file.
func setURL(c *Config, url string) error {
	c.Redis.URL = url
	c.Redis.Sentinel, c.Redis.Cluster, c.Redis.Database = nil, nil, 0
	return nil
}

// Layer is one place that settings come from: how it names them, and whether an
// empty text counts as not set.
type Layer struct {
	// Name is the setting's name in the lookup.
	Name func(Setting) string
	// Source is the setting's name in a problem.
	Source func(Setting) string
	// EmptyIsUnset: a unit file can remove a variable by VARIABLE=.
	EmptyIsUnset bool
}

// Environment is the layer of BATON_… variables.
func Environment() Layer {
	env := func(s Setting) string { return s.Env }
	return Layer{Name: env, Source: env, EmptyIsUnset: true}
}

// Flags is the layer of command-line flags.
func Flags() Layer {
	return Layer{
		Name:   func(s Setting) string { return s.Flag },
		Source: func(s Setting) string { return "--" + s.Flag },
	}
}

// Overlay returns c with the settings of the layer's lookup on top. Its error is Problems that name the flag or variable; a bad value
// leaves c's own in place.
func Overlay(c Config, layer Layer, lookup Lookup) (Config, error) {
	if lookup == nil {
		return c, nil
	}
	var found Problems
	c.places = maps.Clone(c.places)
	if c.places == nil {
		c.places = map[string]place{}
	}
	for _, s := range Settings() {
		value, ok := lookup(layer.Name(s))
		if !ok || value == "" && layer.EmptyIsUnset {
			continue
		}
		c.places[s.Path] = place{source: layer.Source(s)}
		if value == "" {
			found = append(found, c.Problem(s.Path, "must not be empty; leave it out for the default"))
		} else if err := s.set(&c, value); err != nil {
			found = append(found, c.Problem(s.Path, err.Error()))
		}
	}
	return c, found.err()
}
