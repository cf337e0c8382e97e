package config

import (
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// Config is everything that an operator can set.
//
// Load and Overlay leave a setting that was not set at its zero value; WithDefaults fills it in. In every field zero means "not set",
// never "none".
type Config struct {
	Node      Node                `yaml:"node"`
	Redis     Redis               `yaml:"redis"`
	Stores    map[string]Store    `yaml:"stores,omitempty"`
	Election  Election            `yaml:"election"`
	HTTP      HTTP                `yaml:"http"`
	Log       Log                 `yaml:"log"`
	Databases map[string]Database `yaml:"databases"`
	// MaxConcurrentJobs is the maximum number of runs at a time under one lock; runs of @always jobs do not count. Default: any number.
	MaxConcurrentJobs int      `yaml:"max_concurrent_jobs,omitempty" config:"positive"`
	History           History  `yaml:"history"`
	Notify            []Notify `yaml:"notify,omitempty"`
	Defaults          Policy   `yaml:"defaults"`
	Jobs              []Job    `yaml:"jobs"`

	// places maps the path of each value to the place where the value was set: see here.
	places map[string]position
}

// Node describes this host to the others.
type Node struct {
	// ID is this node's name in status, events and the fence; two
	// nodes of one election must not share it. Default: the host name.
	ID string `yaml:"id"`
	// Priority, 0 to 1000: of the live nodes, the node with the highest priority leads first. Default: 0.
	Priority int `yaml:"priority"`
	// Candidate is false for a node that never leads. Default: true if the file has jobs. A node without
	// jobs that led would keep the jobs of other nodes from running.
	Candidate *bool `yaml:"candidate"`
}

// IsCandidate reports whether this node may lead. WithDefaults sets it if the file does not.
func (n Node) IsCandidate() bool { return n.Candidate == nil || *n.Candidate }

// Election configures how one leader is chosen. The defaults that depend on the ttl scale down with it, so that setting the ttl alone
// is always right.
type Election struct {
	// LockKey is the Redis key that the nodes contend for; nodes with the same key and the same Redis are one election. Give each
	// installation its own key. With "" the daemon waits until a key is written there. Default: baton.
	LockKey string `yaml:"lock_key"`
	// TTL is the duration of the lease: after a crash, another node leads after at most this time. At least 1s. Default: 10s.
	TTL time.Duration `yaml:"ttl"`
	// HeartbeatInterval is the time between renewals, varied by up to a tenth.
	// Default: a fifth of the ttl, at most 2s.
	HeartbeatInterval time.Duration `yaml:"heartbeat_interval"`
	// AttemptTimeout is how long a renewal may take. After that the renewal is tried again on a new connection, with twice the time.
	// Default: a tenth of the ttl, at most 1s.
	AttemptTimeout time.Duration `yaml:"attempt_timeout"`
	// PollInterval is the pause between two polls of the lock by a standby, if nothing wakes it. At most 30s. Default: a fifth of the
	// ttl, at most 2s.
	PollInterval time.Duration `yaml:"poll_interval"`
	// Drain is the time that jobs have to end when this node must stop leading; after that the jobs are killed. Default: a fifth of the
	// ttl, at most 2s.
	Drain time.Duration `yaml:"drain"`
	// Acquire is the way to take the lock: "lua", or "setnx" for a server that forbids scripts. Default: lua.
	Acquire string `yaml:"acquire"`
	// LockFormat is the form of the lock in Redis: "string", or "redisson" to exclude Java services that hold Redisson's RLock of the same
	// name. Default: string.
	LockFormat string `yaml:"lock_format"`
	// WaitReplicas is the number of replicas that must have stored a lock before the lock counts, so that a failover does not lose the
	// lock; with fewer live replicas no node leads. Default: 0.
	WaitReplicas int `yaml:"wait_replicas"`
	// AbdicateAfter is how long a leader continues to lead while it reaches Redis but not its databases; after that another node may lead.
	// At least the ttl. Default: 30s, or the ttl if that is longer.
	AbdicateAfter time.Duration `yaml:"abdicate_after"`
	// RolloutWithin is how long a change of the jobs may take to reach every node. Until then it is no problem that
	// nodes have different jobs. Default: 5m.
	RolloutWithin time.Duration `yaml:"rollout_within"`
}

// These are the values of the settings "acquire" and "lock_format".
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
	// AdminSocket is the Unix socket for commands such as "baton reload" by the daemon's user and group; "off" means no socket. Default:
	// admin.sock in systemd's runtime directory; without that directory none.
	AdminSocket string `yaml:"admin_socket,omitempty"`
	// TokenFile holds the token of clients that give orders by the page or the API: one line of at least 16 characters. With this file,
	// records and output are also shown, but only to clients with a token. Default: no orders except by the admin socket.
	TokenFile string `yaml:"token_file,omitempty" config:"expand"`
	// ReadTokenFile holds a second token: a client with this token may read as much as with the first token, but gives no orders. Needs
	// token_file. Default: none.
	ReadTokenFile string `yaml:"read_token_file,omitempty" config:"expand"`
	// TLS serves the page and the API over HTTPS. It is needed for orders from other hosts.
	TLS *ServerTLS `yaml:"tls,omitempty"`
	// Hosts are further names that a listener on loopback accepts, if a reverse proxy on this host forwards its own host name. Default:
	// none.
	Hosts []string `yaml:"hosts,omitempty"`
	// TrustedProxies are addresses of reverse proxies, or networks, whose header X-Forwarded-Proto baton trusts: with "https" the page's
	// cookie is Secure, with "http" the token is refused. Default: none.
	TrustedProxies []string `yaml:"trusted_proxies,omitempty"`
}

// Proxies returns the trusted proxies as networks. It skips a text that is neither an address nor a network, because Validate has already
// refused it.
func (h HTTP) Proxies() []netip.Prefix {
	var all []netip.Prefix
	for _, text := range h.TrustedProxies {
		if p, err := proxyOf(text); err == nil {
			all = append(all, p)
		}
	}
	return all
}

// proxyOf parses an address or a network.
func proxyOf(text string) (netip.Prefix, error) {
	if a, err := netip.ParseAddr(text); err == nil {
		return netip.PrefixFrom(a.Unmap(), a.Unmap().BitLen()), nil
	}
	p, err := netip.ParsePrefix(text)
	return p.Masked(), err
}

// ServerTLS is the certificate of the page and the API. The files are read again after every change.
type ServerTLS struct {
	// CertFile is the certificate and its chain, PEM. Required.
	CertFile string `yaml:"cert_file" config:"expand"`
	// KeyFile is the private key of cert_file, PEM. Required.
	KeyFile string `yaml:"key_file" config:"expand"`
}

// Off is the value of an address or a socket that must not be served.
const Off = "off"

// Log configures the output to standard error.
type Log struct {
	// Level is debug, info, warn or error: less important lines are left out. Default: info.
	Level string `yaml:"level"`
	// Format is "text", for people, or "json", for log collectors. Default: text.
	Format string `yaml:"format"`
}

// Database is one SQL database that jobs flush into.
type Database struct {
	// Driver is postgres, mysql (which serves MariaDB too) or sqlite. Required.
	Driver string `yaml:"driver"`
	// DSNFile is a file with the data source name in one line, read at every start. Either this or dsn is required.
	DSNFile string `yaml:"dsn_file" config:"expand"`
	// DSNInline is the data source name itself; dsn_file keeps the password out of this file. This or dsn_file is required.
	DSNInline string `yaml:"dsn" config:"expand"`
	// Pooler is "transaction" if a pooler in front of PostgreSQL gives each transaction another session of the server. Default: none; baton
	// detects PgBouncer and similar poolers without this setting.
	Pooler string `yaml:"pooler,omitempty"`
}

// PoolerTransaction is the only value of the setting "pooler".
const PoolerTransaction = "transaction"

// Flush moves changes in Redis into a table.
type Flush struct {
	From From `yaml:"from"`
	To   To   `yaml:"to"`
	// Columns says where each column's value comes from. Required for counters. For hashes it may be left out: fields and columns then
	// match by name.
	Columns map[string]Column `yaml:"columns,omitempty"`
	// Lanes is the number of connections that write at the same time, 1 to 16. SQLite has one. Default: 1.
	Lanes int `yaml:"lanes,omitempty" config:"positive"`
	// BatchRows is the intended number of rows of one transaction, 1 to 100000. Default: 5000.
	BatchRows int `yaml:"batch_rows,omitempty" config:"positive"`
	// BatchBytes is the intended size of one transaction, in bytes, 65536 to 1073741824. With several lanes it is the sum over
	// one transaction of each lane. A longer record is written alone. Default: 8388608, which is 8 MiB.
	BatchBytes int `yaml:"batch_bytes,omitempty" config:"positive"`
	// DeadLetters limits the records that may become dead letters.
	DeadLetters DeadLetters `yaml:"dead_letters,omitempty"`
	// Verify compares Redis with the table on a schedule. Only for hashes, zset, scan and capture. Default: only baton job verify compares
	// them.
	Verify Verify `yaml:"verify,omitempty"`
}

// Verify is when the keys of a flush are compared with its table.
type Verify struct {
	// Schedule is the time of the comparisons, in the form and time zone of the job's schedule. Required.
	Schedule string `yaml:"schedule"`
	// Sample is the part of all keys that is compared, in percent. Default: 100%.
	Sample string `yaml:"sample,omitempty"`
	// Rate is the maximum number of keys that are read per second. Default: no limit.
	Rate int `yaml:"rate,omitempty" config:"positive"`
}

// Part returns the share of all keys that is compared, above 0 and up to 1. It returns false if the text is no such share.
func (s Verify) Part() (float64, bool) {
	if s.Sample == "" {
		return 1, true
	}
	number, percent := strings.CutSuffix(s.Sample, "%")
	part, err := strconv.ParseFloat(number, 64)
	return part / 100, percent && err == nil && part > 0 && part <= 100
}

// DeadLetters limits the records that become dead letters because they do not fit the table.
type DeadLetters struct {
	// PerBatch is the maximum number of dead letters of one batch. With more, nothing of the batch is written, and the job is
	// paused. Default: a tenth of batch_rows.
	PerBatch int `yaml:"per_batch,omitempty" config:"positive"`
}

// These are the values of the setting "mode" of counters.
const (
	ModeStage     = "stage"     // increments are removed from Redis
	ModeWatermark = "watermark" // totals stay in Redis, and the database stores the part of each total that it contains
)

// From is the Redis side of a flush.
type From struct {
	// Type is counters, hashes, zset, list, stream, scan or capture. Required.
	Type string `yaml:"type"`
	// Store is a name under stores, where the key is. Default: the key is in redis.
	Store string `yaml:"store,omitempty"`
	// Key is the key to read. [a-b] stands for every number from a to b. For hashes and scan, and for counters with a key each, <id>
	// stands for the id of a row. Required.
	Key string `yaml:"key"`
	// Changed is the SET or ZSET of the ids that changed. Required for hashes, for a zset,
	// whose ids are its members, and for counters with a key each unless mode is watermark.
	Changed string `yaml:"changed,omitempty"`
	// Mode is "stage", to remove increments from Redis, or "watermark", for totals that are never reset: the totals stay in Redis, and the
	// database stores the part of each total that it contains. Only for counters. Default: stage.
	Mode string `yaml:"mode,omitempty"`
	// OnDecrease is the reaction to a total that is lower than before, with mode "watermark": "stop" the job, "subtract" the difference, or
	// "restart", if the counter began again at zero. Default: stop.
	OnDecrease string `yaml:"on_decrease,omitempty"`
	// OnGap is the reaction to entries of a stream that were removed before they were read: "stop" the job, or "continue" after the gap.
	// Default: stop.
	OnGap string `yaml:"on_gap,omitempty"`
	// Start is the place where the first run begins to read a stream: "beginning", "end", or an id. Default: beginning.
	Start string `yaml:"start,omitempty"`
	// Retain is how long entries of a stream stay once they are in the database; 1ms trims them at once. Default: they stay
	// until the producer trims them.
	Retain time.Duration `yaml:"retain,omitempty"`
	// Value is the type of the values under the keys of a scan or capture: "hash", "string", "json" (an object in a string), "set" or
	// "zset"; each member of a set or zset is a row. Default: hash.
	Value string `yaml:"value,omitempty"`
	// Vanished is the reaction to rows whose key is missing after a complete scan: "ignore", or "delete", which needs generation. Default:
	// ignore.
	Vanished string `yaml:"vanished,omitempty"`
	// MaxPct is the maximum share of the table's rows, in percent, that one scan, one pass of a capture, or one verify --repair may delete
	// or set to null. If more rows would change, the operation fails and changes no row. Only for hashes, zset, scan and capture. Default:
	// 10.
	MaxPct int `yaml:"max_pct,omitempty" config:"positive"`
	// OnMissing is the reaction to a changed id whose hash or member is missing, or, for a capture, to a missing key or member: "delete"
	// the row, "ignore" the change, or set the row's columns to "null". Only for hashes, zset and capture. Default: delete.
	OnMissing string `yaml:"on_missing,omitempty" config:"null"`
	// OnFlush is the reaction of a capture to FLUSHALL, FLUSHDB or SWAPDB: "stop" the job; "pass", to read all keys and delete at most
	// max_pct of the rows; or "delete", to delete every row whose key no longer exists. Default: stop.
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
	// Mode is "upsert", "insert", "replace" (delete the row, then insert it) or "delete". Default: upsert with a key, else insert.
	Mode string `yaml:"mode,omitempty"`
	// DedupeKey is the columns of a unique index; with mode "insert" a record is skipped if its row exists already. Default: none.
	DedupeKey []string `yaml:"dedupe_key,omitempty"`
	// DeleteWhen selects the records that delete their row: those with all of these values, such as {op: delete}. Only for lists and
	// streams. Default: none.
	DeleteWhen map[string]string `yaml:"delete_when,omitempty"`
	// Generation is an integer column that counts the passes of a scan; baton finds vanished rows by it. Required for vanished:
	// delete.
	Generation string `yaml:"generation,omitempty"`
	// Adopt says how a pass, a backfill or a repair treats rows that the job never wrote: "insert_only" leaves them unchanged, "overwrite"
	// changes them and deletes none, "delete" changes and deletes them, within max_pct. Only for hashes, zset, scan and capture. Default:
	// ask, by baton job accept.
	Adopt string `yaml:"adopt,omitempty"`
	// KeepDeleted is how long the table baton_deleted keeps whole rows, with their personal data, that on_missing, a pass or a repair
	// deletes, or that the first accepted pass overwrites. Only for hashes, zset, scan and capture. Default: no row is kept.
	KeepDeleted time.Duration `yaml:"keep_deleted,omitempty"`
	// Schema is "verify", to refuse a table that does not fit, or "create", to create a missing table with the types under columns.
	// Default: verify.
	Schema string `yaml:"schema,omitempty"`
}

// Column says where one column's value comes from. In YAML the text alone is short for {from: text}.
type Column struct {
	// From is a field of the hash, or the name captured in its key (id of
	// user:<id>); for counters $field or $value. Default: the column's own name.
	From string `yaml:"from,omitempty"`
	// Op is "set", to replace the row's value, or "add", to add to it; only counters add. Default: add for $value, else set.
	Op string `yaml:"op,omitempty"`
	// Type overrides the type from the database's catalogue: integer, float, numeric, text, bytes, boolean, timestamp, date, json or
	// uuid. Default: from the catalogue.
	Type string `yaml:"type,omitempty"`
	// Format is the form of a timestamp or a date: unix, unix_ms, rfc3339, or a layout of Go's time package. Default: rfc3339.
	Format string `yaml:"format,omitempty"`
	// Missing is the reaction to a record without the field: "error", so that the row becomes a dead letter, "null", or "keep", to leave
	// the column as it is. Default: the column's default, if it has one, else null for a nullable column, else error. For a list or stream,
	// and for a default that is not constant, such as now(), the row keeps its value.
	Missing string `yaml:"missing,omitempty" config:"null"`
	// Empty is "null" to store an empty text as NULL. Default: it is stored as an empty text.
	Empty string `yaml:"empty,omitempty" config:"null"`

	// Place is the place of the column among the columns of the file, from 1. A table that baton creates has its columns in this order.
	Place int `yaml:"-"`
}

// fromText sets c from the short form, which is the value of from.
func (c *Column) fromText(s string) { c.From = s }
