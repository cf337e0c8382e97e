package config

import (
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// Config is everything that an operator can set.
//
// Load and Overlay leave a value that was not set at its zero; WithDefaults fills
// it in. In every field a zero means "not set", never "none".
type Config struct {
	Node      Node                `yaml:"node"`
	Redis     Redis               `yaml:"redis"`
	Stores    map[string]Store    `yaml:"stores,omitempty"`
	Election  Election            `yaml:"election"`
	HTTP      HTTP                `yaml:"http"`
	Log       Log                 `yaml:"log"`
	Databases map[string]Database `yaml:"databases"`
	// MaxConcurrentJobs is how many runs may go on at a time under one lock; those of
	// @always do not count. Default: any number.
	MaxConcurrentJobs int      `yaml:"max_concurrent_jobs,omitempty" config:"positive"`
	History           History  `yaml:"history"`
	Notify            []Notify `yaml:"notify,omitempty"`
	Defaults          Policy   `yaml:"defaults"`
	Jobs              []Job    `yaml:"jobs"`

	// places tells where each value was set, by its path; see place.
	places map[string]place
}

// Node names this host to the others.
type Node struct {
	// ID is this node's name in status, events and the fence; two
	// nodes of one election must not share it. Default: the host name.
	ID string `yaml:"id"`
	// Priority, 0 to 1000: of the nodes that are there, one with a higher priority
	// leads before one with a lower. Default: 0.
	Priority int `yaml:"priority"`
	// Candidate is false for a node that never leads. Default: true if the file has jobs. A node without
	// jobs that led would keep the jobs of other nodes from running.
	Candidate *bool `yaml:"candidate"`
}

// IsCandidate reports whether this node may lead. WithDefaults sets it if the file does not.
func (n Node) IsCandidate() bool { return n.Candidate == nil || *n.Candidate }

// Election is how one leader is chosen. The defaults that depend on the ttl
// scale down with it, so that setting the ttl alone is always right.
type Election struct {
	// LockKey is the Redis key that the nodes contend for; nodes with the same
	// key and the same Redis are one election. Give each installation its own. With "" the
	// daemon waits until a key is written there. Default: baton.
	LockKey string `yaml:"lock_key"`
	// TTL is the lease: after a crash it takes at most this long until another
	// node leads. At least 1s. Default: 10s.
	TTL time.Duration `yaml:"ttl"`
	// HeartbeatInterval is the time between renewals, give or take a tenth.
	// Default: a fifth of the ttl, at most 2s.
	HeartbeatInterval time.Duration `yaml:"heartbeat_interval"`
	// AttemptTimeout is how long a renewal may take before it is tried again, for
	// twice as long, on a fresh connection. Default: a tenth of the ttl, at most 1s.
	AttemptTimeout time.Duration `yaml:"attempt_timeout"`
	// PollInterval is how often a standby polls the lock if nothing wakes it.
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
	// failover does not lose it; with fewer of them alive no node leads. Default: 0.
	WaitReplicas int `yaml:"wait_replicas"`
	// AbdicateAfter is how long a leader that reaches Redis but not its databases
	// goes on before it lets another node try. At least the ttl. Default: 30s, or
	// the ttl if that is longer.
	AbdicateAfter time.Duration `yaml:"abdicate_after"`
	// RolloutWithin is how long a change of the jobs may take to reach every node. Until then nodes that
	// differ are no problem. Default: 5m.
	RolloutWithin time.Duration `yaml:"rollout_within"`
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
	// AdminSocket is the Unix socket of the daemon for baton reload, for its user and group; "off" is none. Default: admin.sock in
	// systemd's runtime directory, without one none.
	AdminSocket string `yaml:"admin_socket,omitempty"`
	// TokenFile holds the token of clients that give orders by the page or the API: one line of at least 16 characters. It is read again
	// after every change. With it, records and output are shown to clients that have it, too, and to no others. Default: no orders except
	// by the admin socket.
	TokenFile string `yaml:"token_file,omitempty" config:"expand"`
	// ReadTokenFile holds a second token, as TokenFile does: a client with it may read like one with the first, and gives no orders.
	// Needs token_file. Default: none.
	ReadTokenFile string `yaml:"read_token_file,omitempty" config:"expand"`
	// TLS has the page and the API served over HTTPS. Needed for orders from other hosts:
	// a token is not taken from a network that can read it.
	TLS *ServerTLS `yaml:"tls,omitempty"`
	// Hosts are further names for a listener on loopback, for a reverse proxy on this host that passes its own name on. Default: none.
	Hosts []string `yaml:"hosts,omitempty"`
	// TrustedProxies are addresses of reverse proxies, or networks, whose X-Forwarded-Proto is believed: https makes the page's cookie
	// Secure, with http the token is refused. Default: none.
	TrustedProxies []string `yaml:"trusted_proxies,omitempty"`
}

// Proxies are the trusted proxies as networks; others are left out, since Validate has refused them.
func (h HTTP) Proxies() []netip.Prefix {
	var all []netip.Prefix
	for _, text := range h.TrustedProxies {
		if p, err := proxyOf(text); err == nil {
			all = append(all, p)
		}
	}
	return all
}

// proxyOf reads an address or a network.
func proxyOf(text string) (netip.Prefix, error) {
	if a, err := netip.ParseAddr(text); err == nil {
		return netip.PrefixFrom(a.Unmap(), a.Unmap().BitLen()), nil
	}
	p, err := netip.ParsePrefix(text)
	return p.Masked(), err
}

// ServerTLS is our certificate for browsers. The files are read again after every change.
type ServerTLS struct {
	// CertFile is the certificate and its chain, PEM. Required.
	CertFile string `yaml:"cert_file" config:"expand"`
	// KeyFile is its private key, PEM. Required.
	KeyFile string `yaml:"key_file" config:"expand"`
}

// Off replaces an address that must not be served.
const Off = "off"

// Log is what goes to standard error.
type Log struct {
	// Level is debug, info, warn or error: less important lines are left out. Default: info.
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
	// of this file. ${NAME} is replaced from the environment. This or dsn_file is required.
	DSNInline string `yaml:"dsn" config:"expand"`
	// Pooler says that a pooler in front of PostgreSQL gives each transaction another session of the server: transaction. Default: none;
	// baton finds PgBouncer and its kind without it.
	Pooler string `yaml:"pooler,omitempty"`
}

// PoolerTransaction is the value of pooler.
const PoolerTransaction = "transaction"

// Flush moves what changed in Redis into a table.
type Flush struct {
	From From `yaml:"from"`
	To   To   `yaml:"to"`
	// Columns says what each column is made of. Required for counters. For
	// hashes it may be left out: fields and columns then match by name.
	Columns map[string]Column `yaml:"columns,omitempty"`
	// Lanes is how many connections write at the same time, 1 to 16. SQLite has
	// one. Default: 1.
	Lanes int `yaml:"lanes,omitempty" config:"positive"`
	// BatchRows is the aim for the rows of one transaction, 1 to 100000. Default: 5000.
	BatchRows int `yaml:"batch_rows,omitempty" config:"positive"`
	// BatchBytes is the aim for the bytes of one transaction, in bytes, 65536 to 1073741824; of
	// one of every lane together. A longer record goes alone. Default: 8388608, which is 8 MiB.
	BatchBytes int `yaml:"batch_bytes,omitempty" config:"positive"`
	// DeadLetters bounds the records that may be put aside.
	DeadLetters DeadLetters `yaml:"dead_letters,omitempty"`
	// Verify compares Redis with the table now and then. For hashes, zset, scan and capture.
	// Default: only baton job verify does.
	Verify Verify `yaml:"verify,omitempty"`
}

// Verify is when the keys of a flush are compared with its table.
type Verify struct {
	// Schedule is when to compare, in the form and time zone of the job's schedule. Required.
	Schedule string `yaml:"schedule"`
	// Sample is the part of all keys that is compared, in percent. Default: 100%.
	Sample string `yaml:"sample,omitempty"`
	// Rate is how many keys a second are read at most. Default: as many as it can.
	Rate int `yaml:"rate,omitempty" config:"positive"`
}

// Part is the part of all keys that is compared, above 0 and up to 1; false if the text is no such part.
func (s Verify) Part() (float64, bool) {
	if s.Sample == "" {
		return 1, true
	}
	number, percent := strings.CutSuffix(s.Sample, "%")
	part, err := strconv.ParseFloat(number, 64)
	return part / 100, percent && err == nil && part > 0 && part <= 100
}

// DeadLetters bounds the records that are put aside because they do not fit.
type DeadLetters struct {
	// PerBatch is the most dead letters of one batch. With more of them nothing of the
	// batch is written and the job is paused. Default: a tenth of batch_rows.
	PerBatch int `yaml:"per_batch,omitempty" config:"positive"`
}

// The modes of counters.
const (
	ModeStage     = "stage"     // increments are taken out of Redis
	ModeWatermark = "watermark" // totals stay in Redis, the database keeps the part that it has
)

// From is the Redis side of a flush.
type From struct {
	// Type is counters, hashes, zset, list, stream, scan or capture. Required.
	Type string `yaml:"type"`
	// Store is a name under stores, where the key is. Default: the key is in redis.
	Store string `yaml:"store,omitempty"`
	// Key is the key to read. [a-b] stands for every number from a to b. For
	// hashes and scan, and for counters with a key each, it has an <id> instead, where a
	// row's id stands. Required.
	Key string `yaml:"key"`
	// Changed is the SET or ZSET of the ids that changed. Required for hashes, for a zset,
	// whose ids are its members, and for counters with a key each unless mode is watermark.
	Changed string `yaml:"changed,omitempty"`
	// Mode is stage, to take increments out of Redis, or watermark, for totals that are never reset: they stay, and the database keeps
	// the part that it has. Counters only. Default: stage.
	Mode string `yaml:"mode,omitempty"`
	// OnDecrease is the meaning of a total that is lower than before, with mode watermark: stop the job, subtract the difference, or
	// restart, as counters do that began again at zero. Default: stop.
	OnDecrease string `yaml:"on_decrease,omitempty"`
	// OnGap is what happens when entries of a stream have gone unread, because it was trimmed too early or Redis lost data: stop the job,
	// or continue after the gap. Stream only. Default: stop.
	OnGap string `yaml:"on_gap,omitempty"`
	// Start is where the first reading of a stream begins: beginning, end, or an id. Default: beginning.
	Start string `yaml:"start,omitempty"`
	// Retain is how long entries of a stream stay once they are in the database; 1ms
	// trims them at once. Stream only. Default: they stay, the producer trims.
	Retain time.Duration `yaml:"retain,omitempty"`
	// Value is the type of the values under the keys of a scan or capture: hash, string, json (an object in a string), or set or zset,
	// whose members are a row each. Scan and capture only. Default: hash.
	Value string `yaml:"value,omitempty"`
	// Vanished is what happens to rows whose key is gone after a complete scan: ignore
	// or delete, which needs generation. Scan only. Default: ignore.
	Vanished string `yaml:"vanished,omitempty"`
	// MaxPct is the share of the table's rows, in percent, that one scan, one pass of a capture, or
	// one verify --repair may delete or set to null; with more it fails and changes none. Hashes, zset,
	// scan and capture only. Default: 10.
	MaxPct int `yaml:"max_pct,omitempty" config:"positive"`
	// OnMissing is what happens to the row of a changed id whose hash or member is gone: delete it, ignore the change, or set its columns
	// to null; for a capture the row of a key or member that is gone. Hashes, zset and capture only. Default: delete.
	OnMissing string `yaml:"on_missing,omitempty" config:"null"`
	// OnFlush is the reaction of a capture to FLUSHALL, FLUSHDB or SWAPDB: stop the job, make a pass over all keys, which deletes no more
	// rows than max_pct, or delete every row that has no key any more. Capture only. Default: stop.
	OnFlush string `yaml:"on_flush,omitempty"`
}

// To is the SQL side of a flush.
type To struct {
	// Database is a name under databases. Required.
	Database string `yaml:"database"`
	// Table is the target table, or schema.table. Required.
	Table string `yaml:"table"`
	// Key is the columns that identify a row; the table needs a unique index on
	// exactly these. Required unless mode is insert.
	Key []string `yaml:"key,omitempty"`
	// Mode is upsert, insert, replace (delete the row, then insert it) or delete. Default: upsert with a key, else insert.
	Mode string `yaml:"mode,omitempty"`
	// DedupeKey is the columns of a unique index; with mode insert a record that is
	// there already is left out. Default: none.
	DedupeKey []string `yaml:"dedupe_key,omitempty"`
	// DeleteWhen makes a record delete its row if it has all of these values: {op: delete}. List and stream only. Default: none.
	DeleteWhen map[string]string `yaml:"delete_when,omitempty"`
	// Generation is an integer column that counts the passes of a scan; it marks which
	// rows have vanished. Required for vanished: delete.
	Generation string `yaml:"generation,omitempty"`
	// Adopt is how a pass treats rows that the job never wrote: insert_only leaves them, overwrite changes them and deletes none, delete
	// changes and deletes them, within max_pct. Scan and capture only. Default: ask, by baton job accept.
	Adopt string `yaml:"adopt,omitempty"`
	// Schema is verify, to refuse a table that does not fit, or create, to make one
	// that is missing, with the types under columns. Default: verify.
	Schema string `yaml:"schema,omitempty"`
}

// Column tells how one column is made. In YAML the text alone is short for {from: text}.
type Column struct {
	// From is a field of the hash, or the name captured in its key (id of
	// user:<id>); for counters $field or $value. Default: the column's own name.
	From string `yaml:"from,omitempty"`
	// Op is set, to replace the row's value, or add, to add to it; only counters add. Default: add for $value, else set.
	Op string `yaml:"op,omitempty"`
	// Type overrides the type from the database's catalogue: integer, float, numeric, text, bytes, boolean, timestamp, date, json or
	// uuid. Default: from the catalogue.
	Type string `yaml:"type,omitempty"`
	// Format is the form of a timestamp or a date: unix, unix_ms, rfc3339, or a layout of Go's time package. Default: rfc3339.
	Format string `yaml:"format,omitempty"`
	// Missing is the meaning of a record without the field: error, so that the row becomes a dead letter, null, or keep, to leave the
	// column as it is. Default: the column's default, if it has one, else null for a nullable column, else error. A list or stream, and a
	// default that is not constant, such as now(), keep the row's value.
	Missing string `yaml:"missing,omitempty" config:"null"`
	// Empty is "null" to store an empty text as NULL. Default: as it is.
	Empty string `yaml:"empty,omitempty" config:"null"`

	// Place among the columns of the file, from 1: a table that baton makes has this order.
	Place int `yaml:"-"`
}

// fromText is the short form.
func (c *Column) fromText(s string) { c.From = s }
