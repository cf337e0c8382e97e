package config

import (
	"maps"
	"strings"
	"time"
)

// Setting is a value that can be set by a flag and by an environment variable.
type Setting struct {
	Flag  string // the name without dashes
	Env   string // the name, BATON_…
	Path  string // the path in the file
	Usage string // one line; the word in backquotes names the argument
	set   func(*Config, string) error
}

// Settings returns all settings in the order of the help text.
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
		{Flag: "ttl", Path: "election.ttl", Usage: "`duration` of the lease, at least 1s",
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

// setURL sets the URL of the server to use. It removes Sentinels or a Cluster that the file names.
func setURL(c *Config, url string) error {
	c.Redis.URL = url
	c.Redis.Sentinel, c.Redis.Cluster, c.Redis.Database = nil, nil, 0
	return nil
}

// Layer is a source of settings. It says how the source names the settings, and whether an empty text counts as not set.
type Layer struct {
	// Name returns the name of a setting in the lookup.
	Name func(Setting) string
	// Source returns the name of a setting in a problem.
	Source func(Setting) string
	// EmptyIsUnset means that an empty text counts as not set, because a unit file can remove a variable with VARIABLE=.
	EmptyIsUnset bool
}

// Environment returns the layer of the BATON_… variables.
func Environment() Layer {
	env := func(s Setting) string { return s.Env }
	return Layer{Name: env, Source: env, EmptyIsUnset: true}
}

// Flags returns the layer of the command-line flags.
func Flags() Layer {
	return Layer{
		Name:   func(s Setting) string { return s.Flag },
		Source: func(s Setting) string { return "--" + s.Flag },
	}
}

// Overlay returns c with the settings that the layer's lookup contains. Its error is Problems that name the flag or the variable. An
// invalid value does not replace the value in c.
func Overlay(c Config, layer Layer, lookup Lookup) (Config, error) {
	if lookup == nil {
		return c, nil
	}
	var found Problems
	c.places = maps.Clone(c.places)
	if c.places == nil {
		c.places = map[string]position{}
	}
	for _, s := range Settings() {
		value, ok := lookup(layer.Name(s))
		if !ok || value == "" && layer.EmptyIsUnset {
			continue
		}
		c.places[s.Path] = position{source: layer.Source(s)}
		if value == "" {
			found = append(found, c.Problem(s.Path, "must not be empty; leave it out for the default"))
		} else if err := s.set(&c, value); err != nil {
			found = append(found, c.Problem(s.Path, err.Error()))
		}
	}
	return c, found.err()
}
