package finding

// These are the kinds of findings about the configuration.
var (
	configuration = &Table{Name: "configuration"}

	LongTTL = configuration.kind(SeverityWarning, " above a minute", "election.ttl is …, which is long",
		"no node leads for this time when a host is gone")
	ShortTTL = configuration.kind(SeverityInfo, " below 3 s", "election.ttl is …, which is short",
		"the lead, when a host stops for this time")
	OpenListener = configuration.kind(SeverityWarning, "; with `http.tls` an info",
		"http.listen is …, reachable from other hosts, without http.tls",
		"every client that can reach it reads names, times and errors")
	ShortGrace = configuration.kind(SeverityInfo, "", "its grace is …, and election.ttl is …",
		"a command gets less than its grace where the lease cannot be renewed")
	UnreadStore = configuration.kind(SeverityWarning, "", "no job reads the store …",
		"nothing")
	SameRedis = configuration.kind(SeverityWarning, "", "stores.… is the same Redis as …",
		"nothing")
	SharedTable = configuration.kind(SeverityInfo, "", "other jobs write to its table …, too",
		"the order of their changes")
	LongRuns = configuration.kind(SeverityWarning, "; with `overlap: replace` an error",
		"half of its last runs took … or longer, and it is due again after …",
		"slots, or runs that never end. From three runs in the history on")
)

// These are the kinds of findings about the nodes of an election.
var (
	nodes = &Table{Name: "nodes"}

	SameNodeID = nodes.kind(SeverityError, "", "two processes have this node.id",
		"orders: either may execute them, and status shows one at a time. The log says it at once")
	ManyNodes = nodes.kind(SeverityWarning, "", "the list of nodes is longer than baton reads: … of its entries were read",
		"nodes are missing from status and page")
	NodeClock = nodes.kind(SeverityWarning, " from 1 s", "its clock is … ahead of, or behind, that of Redis",
		"nothing; slots start early or late while it leads")
	OtherJobsThanLeader = nodes.kind(SeverityWarning, "", "its jobs have another configuration than those of the leader",
		"which jobs run")
	OtherJobsThanFile = nodes.kind(SeverityWarning, "", "it runs with other jobs than this configuration has",
		"the changes are not in force: `baton reload`")
	OtherVersion = nodes.kind(SeverityInfo, "", "its version is …, and the leader, …, has …",
		"")
)

// These are the kinds of findings about this host.
var (
	host = &Table{Name: "host"}

	UnsyncedClock = host.kind(SeverityWarning, "", "its clock is not synchronized",
		"nothing; slots start by the leader's clock")
	UncheckedHostClock = host.kind(SeverityInfo, "", "whether its clock is synchronized could not be checked",
		"")
	FewFiles = host.kind(SeverityWarning, " below 1024", "a process may open … files",
		"connections are refused, runs fail")
	FullDisk = host.kind(SeverityError, " when less than 8 MiB are free there", "the disk of … is full: … MiB are free",
		"every batch there")
	NearlyFullDisk = host.kind(SeverityWarning, " below 256 MiB", "the disk of … is nearly full: … MiB are free",
		"the same, soon")
	HostFits = host.kind(SeverityOK, "", "its clock, its limits and its disks are fine",
		"")
)

// These are the kinds of findings about the systemd unit of baton.
var (
	unit = &Table{Name: "unit"}

	UncheckedUnit = unit.kind(SeverityInfo, "",
		"how systemd runs baton could not be checked; systemd has no such unit on this host",
		"")
	KillMode = unit.kind(SeverityError, "", "KillMode is …, not mixed",
		"commands outlive the daemon, or end before it")
	NoSIGKILL = unit.kind(SeverityError, "", "SendSIGKILL is no",
		"commands run beside those of the next leader")
	NoRelease = unit.kind(SeverityWarning, "", "ExecStopPost= does not run baton release --crashed",
		"after a crash no node leads for the rest of the lease")
	NoRestart = unit.kind(SeverityWarning, "", "Restart is no, or on-success",
		"this host is no longer a standby")
	ShortStop = unit.kind(SeverityWarning, "", "TimeoutStopSec is …, and election.drain and the longest grace of a job are …",
		"runs that are killed at a stop count as lost")
	TypeNotNotify = unit.kind(SeverityWarning, "", "Type is …, not notify",
		"an upgrade goes on to the next host too soon")
	NoWatchdog = unit.kind(SeverityWarning, "", "WatchdogSec= is not set",
		"a daemon that hangs is not started again")
	NoReload = unit.kind(SeverityInfo, "", "ExecReload= is not set",
		"`systemctl reload` fails")
	NoStateDirectory = unit.kind(SeverityInfo, "", "StateDirectory= is not set",
		"a Redis that has lost everything counts as a new one")
	NoRuntimeDirectory = unit.kind(SeverityWarning, "", "RuntimeDirectory= is not set",
		"there is no lease file, and no admin socket")
	ChangedUnit = unit.kind(SeverityWarning, "", "its files have changed since systemd read them",
		"the changes are not in force")
	RunsAsRoot = unit.kind(SeverityWarning, "", "it runs as root",
		"the host, if an attacker controls a job")
	UnitFewFiles = unit.kind(SeverityWarning, " below 1024", "LimitNOFILE is …",
		"connections are refused, runs fail")
	LittleMemory = unit.kind(SeverityWarning, " below 64 MiB", "MemoryMax is … MiB",
		"the daemon is killed in a large batch, again and again")
	NoCredential = unit.kind(SeverityError, "",
		"LoadCredential= names a file that is not there; it has no LoadCredential=, but the configuration reads …",
		"the daemon does not start")
	DatabaseFileInSandbox = unit.kind(SeverityError, "", "the file of a database, …, cannot be written in its sandbox (…)",
		"every batch")
	LogFileInSandbox = unit.kind(SeverityError, "", "the log file of job …, …, cannot be written in its sandbox (…)",
		"its runs fail")
	NoRightToUsers = unit.kind(SeverityError, "", "job … has a user of its own, and the unit lacks …",
		"the daemon does not start")
	NoRightToNice = unit.kind(SeverityError, "", "job … sets nice, and SystemCallFilter= forbids it",
		"the daemon does not start")
	TightSandbox = unit.kind(SeverityInfo, "", "its jobs run commands in the tight sandbox",
		"a command that writes elsewhere fails")
	UnitFits = unit.kind(SeverityOK, "", "systemd runs baton as it needs to be run",
		"")
)

// These are the kinds of findings about files on this host.
var (
	files = &Table{Name: "files"}

	SecretsInReadableFile = files.kind(SeverityError, "", "every user of this host can read it, and it has secrets in it: …",
		"the secrets in the configuration")
	ReadableSecret = files.kind(SeverityError, "", "every user of this host can read it, and it holds a secret",
		"that secret")
	WritableByOthers = files.kind(SeverityError, "", "every user of this host can write to it",
		"everything")
	UnwritableDirectory = files.kind(SeverityError, "", "this user cannot write there",
		"the highest epoch, and the lease file")
	UnusableToken = files.kind(SeverityError, "", "a token or a certificate of `http` cannot be used",
		"the node does not start")
	EndedCertificate = files.kind(SeverityError, "", "http.tls: the certificate in … has expired, or is not valid yet",
		"browsers, Prometheus and `baton --server` refuse to connect; the node still leads")
	EndingCertificate = files.kind(SeverityWarning, "", "http.tls: the certificate in … expires soon",
		"the same, soon: in the last tenth of its time, two weeks at most. The log says it, too")
)

// These are the kinds of findings about every type of job.
var (
	jobs = &Table{Name: "jobs"}

	Unstartable = jobs.kind(SeverityError, "",
		"command not found, or cannot be run; a working directory, `env_file` or secret that is not there or not readable",
		"the runs fail while this host leads")
	Unsendable = jobs.kind(SeverityError, "",
		"a `url_file`, `token_file` or command of a notification or a dead man's switch that is not there or not readable",
		"nothing is sent while this host leads")
	OtherElection = jobs.kind(SeverityError, "", "its fence in database … belongs to lock …, and election.lock_key is …",
		"the job fails; the remedy contains the SQL statement that moves the job")
	UnknownLeader = jobs.kind(SeverityWarning, "", "its fence in database … has epoch …, and the last epoch of lock … in this Redis is …",
		"two leaders may take the fence from each other")
	Misfit = jobs.kind(SeverityError, "",
		"no such table, no such column, a type that does not fit, a column that must be written and is not, an engine "+
			"without transactions, no unique index on `key`, a `key` by which different texts are equal (a collation that "+
			"ignores case or blanks at the end, `citext`)",
		"the job fails; the changes wait")
	UnreadableChanges = jobs.kind(SeverityError, "", "the waiting changes in Redis cannot be read",
		"a key holds something else, or a program other than baton has written to baton's keys")
	OtherUnique = jobs.kind(SeverityInfo, "; MySQL and MariaDB: warning", "table … has another unique index than the job's key",
		"rows that collide with *another* row in it become dead letters, two rows that swap their values in one batch, too")
	UniqueWithoutDedupe = jobs.kind(SeverityInfo, "", "table … has unique indexes, and the job inserts without a dedupe_key",
		"a record that comes twice becomes a dead letter")
	Unaccepted = jobs.kind(SeverityWarning, "", "table … had rows that the job never wrote, so baton did not change them: …",
		"nothing; [the table does not equal Redis](sources.md#capture)")
	Triggers = jobs.kind(SeverityInfo, "", "table … has triggers",
		"a trigger may change or refuse rows")
	Default = jobs.kind(SeverityInfo, "", "table … has a default for …: the job sets it where a record in Redis has no such field",
		"a value that another program writes there")
	JobFits = jobs.kind(SeverityOK, "",
		"its command can be started on this host; table … fits; columns written: …; table … is not there yet",
		"")
)
