package config

import "time"

// Config is everything that an operator can set.
//
// Load and Overlay leave a value that nobody set at its zero; WithDefaults fills
// it in. In every field a zero means "not set", never "none".
type Config struct {
	Node      Node                `yaml:"node"`
	Redis     Redis               `yaml:"redis"`
	Election  Election            `yaml:"election"`
	HTTP      HTTP                `yaml:"http"`
	Log       Log                 `yaml:"log"`
	Databases map[string]Database `yaml:"databases"`
	Defaults  Defaults            `yaml:"defaults"`
	Jobs      []Job               `yaml:"jobs"`

	// places says where each value was set, by its path; see place.
	places map[string]place
}

// Node names this host to the others.
type Node struct {
	// ID tells this node from the others in status, events and the fence; two
	// nodes of one election must not share it. Default: the host name.
	ID string `yaml:"id"`
	// Priority, 0 to 1000: of the nodes that are there, one with a higher priority
	// leads before one with a lower. Default: 0.
	Priority int `yaml:"priority"`
	// Candidate is false for a node that never leads. Default: true.
	Candidate *bool `yaml:"candidate"`
}

// IsCandidate reports whether this node may lead.
func (n Node) IsCandidate() bool { return n.Candidate == nil || *n.Candidate }

// Election is how one leader is chosen. The defaults that depend on the ttl
// scale down with it, so that setting the ttl alone is always right.
type Election struct {
	// LockKey is the Redis key that the nodes contend for; nodes with the same
	// key and the same Redis are one election. Default: baton.
	LockKey string `yaml:"lock_key"`
	// TTL is the lease: after a crash it takes at most this long until another
	// node leads. At least 1s. Default: 10s.
	TTL time.Duration `yaml:"ttl"`
	// HeartbeatInterval is the time between renewals, give or take a tenth.
	// Default: a fifth of the ttl, at most 2s.
	HeartbeatInterval time.Duration `yaml:"heartbeat_interval"`
	// AttemptTimeout is how long one renewal may take before it counts as lost
	// and is tried again on a fresh connection. Default: a tenth of the ttl, at most 1s.
	AttemptTimeout time.Duration `yaml:"attempt_timeout"`
	// PollInterval is how often a standby looks at the lock if nothing wakes it.
	// At most 30s. Default: a fifth of the ttl, at most 2s.
	PollInterval time.Duration `yaml:"poll_interval"`
	// Drain is how long jobs have to end, once this node must stop leading,
	// before they are killed. Default: a fifth of the ttl, at most 2s.
	Drain time.Duration `yaml:"drain"`
	// Acquire is lua, or setnx for a server that forbids scripts. Default: lua.
	Acquire string `yaml:"acquire"`
	// LockFormat is string, or redisson to exclude Java services that hold
	// Redisson's RLock of the same name. Default: string.
	LockFormat string `yaml:"lock_format"`
	// WaitReplicas is how many replicas must have a lock before it counts, so that a
	// failover does not lose it; with fewer of them alive nobody leads. Default: 0.
	WaitReplicas int `yaml:"wait_replicas"`
	// AbdicateAfter is how long a leader that reaches Redis but not its databases
	// goes on before it lets another node try. At least the ttl. Default: 30s, or
	// the ttl if that is longer.
	AbdicateAfter time.Duration `yaml:"abdicate_after"`
}

// The values of acquire and lock_format.
const (
	AcquireLua   = "lua"
	AcquireSetNX = "setnx"

	FormatString   = "string"
	FormatRedisson = "redisson"
)

// HTTP is the status page, the API and the health endpoints.
type HTTP struct {
	// Listen is host:port. Port 0 takes any free port; "off" serves nothing.
	// Default: 127.0.0.1:9747.
	Listen string `yaml:"listen"`
}

// Log is what goes to standard error.
type Log struct {
	// Level is debug, info, warn or error: what is less grave is left out. Default: info.
	Level string `yaml:"level"`
	// Format is text, for people, or json, for log collectors. Default: text.
	Format string `yaml:"format"`
}

// Database is one SQL database that jobs flush into.
type Database struct {
	// Driver is postgres, mysql (which serves MariaDB too) or sqlite. Required.
	Driver string `yaml:"driver"`
	// DSNFile holds the data source name, one line. It is read at every start.
	// ${NAME} is replaced from the environment. Either this or dsn is required.
	DSNFile string `yaml:"dsn_file" config:"expand"`
	// DSNInline is the data source name itself; dsn_file keeps the password out
	// of this file. ${NAME} is replaced from the environment.
	DSNInline string `yaml:"dsn" config:"expand"`
}

// Defaults are for every job that does not say otherwise.
type Defaults struct {
	// TimeZone is an IANA name by which schedules are read. Default: UTC.
	TimeZone string `yaml:"time_zone"`
	// Timeout ends a run that takes longer. Default: 1h.
	Timeout time.Duration `yaml:"timeout"`
	// CatchUp is latest, to run the last slot that no node ran because none led,
	// or none, to wait for the next one. Default: latest.
	CatchUp string `yaml:"catch_up"`
	// StartingDeadline is how long after its slot a run may still start; a slot
	// older than that is counted as missed. Default: none, the latest slot always runs.
	StartingDeadline time.Duration `yaml:"starting_deadline,omitempty"`
}

// Job is one scheduled flush.
type Job struct {
	// Name identifies the job for ever: its fence and its history are kept under
	// it. Lower-case letters, digits and dashes, at most 63. Required, unique.
	Name string `yaml:"name"`
	// Schedule is five-field cron, "@hourly" and the like, or "@every 5s". Required.
	Schedule string `yaml:"schedule"`
	// These are as in Defaults, which fill them in.
	TimeZone         string        `yaml:"time_zone"`
	Timeout          time.Duration `yaml:"timeout"`
	CatchUp          string        `yaml:"catch_up"`
	StartingDeadline time.Duration `yaml:"starting_deadline,omitempty"`
	// Flush is what the job does. Required.
	Flush Flush `yaml:"flush"`
}

// Flush moves what changed in Redis into a table.
type Flush struct {
	From From `yaml:"from"`
	To   To   `yaml:"to"`
	// Columns says what each column is made of. Required for counters. For
	// hashes it may be left out: fields and columns then match by name.
	Columns map[string]Column `yaml:"columns,omitempty"`
}

// The types of a source.
const (
	Counters = "counters" // hash: field → increment not yet flushed
	Hashes   = "hashes"   // one hash a row, and an index of the changed ids
)

// From is the Redis side of a flush.
type From struct {
	// Type is counters or hashes. Required.
	Type string `yaml:"type"`
	// Key is the key to read. [a-b] stands for every number from a to b. For
	// hashes it has one <id> instead, where a row's id stands. Required.
	Key string `yaml:"key"`
	// Changed is the SET or ZSET of the ids that changed; hashes only, required.
	Changed string `yaml:"changed,omitempty"`
	// OnMissing is what happens to the row of a changed id whose hash is gone:
	// delete it, ignore the change, or set its columns to null. Hashes only.
	// Default: delete.
	OnMissing string `yaml:"on_missing,omitempty" config:"null"`
}

// To is the SQL side of a flush.
type To struct {
	// Database is a name under databases. Required.
	Database string `yaml:"database"`
	// Table is the target table, or schema.table. It must exist. Required.
	Table string `yaml:"table"`
	// Key is the columns that identify a row; the table needs a unique index on
	// exactly these. Required.
	Key []string `yaml:"key"`
}

// Column is what one column is made of. In YAML the text alone is short for {from: text}.
type Column struct {
	// From is a field of the hash, or the name captured in its key (id of
	// user:<id>); for counters $field or $value. Default: the column's own name.
	From string `yaml:"from,omitempty"`
	// Op is set, to replace what the row has, or add, to add to it; only
	// counters add. Default: add for $value, else set.
	Op string `yaml:"op,omitempty"`
	// Type overrides what the database's catalogue says: integer, float, numeric,
	// text, bytes, boolean, timestamp, date, json or uuid. Default: from the catalogue.
	Type string `yaml:"type,omitempty"`
	// Format is how a timestamp or a date is written: unix, unix_ms, rfc3339, or
	// a layout of Go's time package. Default: rfc3339.
	Format string `yaml:"format,omitempty"`
	// Missing is what a hash without the field means: error, so that the row
	// becomes a dead letter, or null. Default: null for a nullable column, else error.
	Missing string `yaml:"missing,omitempty" config:"null"`
	// Empty is "null" to store an empty text as NULL. Default: as it is.
	Empty string `yaml:"empty,omitempty" config:"null"`
}

// fromText is the short form.
func (c *Column) fromText(s string) { c.From = s }
