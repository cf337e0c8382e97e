package finding

// These are the kinds of findings about every server: a Redis or a database.
var (
	servers = &Table{Name: "servers"}

	Unopened = servers.kind(SeverityError, "", "its settings in the configuration cannot be used",
		"the node does not start")
	Away = servers.kind(SeverityError, "", "it does not answer, it hangs",
		"nothing; the changes wait")
	OldVersion = servers.kind(SeverityWarning, "", "its version is …; baton is made for … or newer",
		"commands or statements may be refused")
	Clock = servers.kind(SeverityWarning, " from 1 s", "its clock is … ahead of, or behind, this host's",
		"nothing; slots start early or late")
)

// These are the kinds of findings about Redis.
var (
	redis = &Table{Name: "redis"}

	NotTheMaster = redis.kind(SeverityError, "", "it is a replica of …, it is a node of a Cluster",
		"it accepts no writes, or has not all keys")
	TooSlow = redis.kind(SeverityError, "", "it is too slow for election.attempt_timeout",
		"most renewals count as lost: no node leads for long. This is the median of 40 round trips")
	SlowAnswers = redis.kind(SeverityWarning, "", "its answers take up to more than half of election.attempt_timeout",
		"the lead, when several in a row take longer. This is the worst of the 40")
	Loading = redis.kind(SeverityWarning, "", "it is loading its data",
		"nothing; wait")
	EvictsAll = redis.kind(SeverityError, "", "maxmemory-policy is allkeys-…",
		"when memory is full, changes that wait, staged batches, the lock")
	EvictsExpiring = redis.kind(SeverityWarning, "", "maxmemory-policy is volatile-…",
		"when memory is full, the lock, and rows with an `EXPIRE`")
	EvictsLater = redis.kind(SeverityInfo, "", "maxmemory-policy is …, without effect as maxmemory is 0",
		"the same, once an operator sets it")
	NearlyFull = redis.kind(SeverityWarning, " from 90 %, error when full", "it uses … of its maxmemory",
		"the writes that Redis then refuses")
	KeepsNothing = redis.kind(SeverityError, "", "it keeps nothing on disk",
		"with a restart, everything that waits")
	SnapshotsOnly = redis.kind(SeverityWarning, "", "it keeps snapshots only",
		"with a crash, the changes since the last snapshot")
	UncheckedSnapshots = redis.kind(SeverityWarning, "", "the append-only file is off, and its snapshots could not be checked",
		"the same, or everything that waits")
	NeverSyncs = redis.kind(SeverityWarning, "", "appendfsync is no",
		"with a crash of the host, about half a minute")
	SyncsEverySecond = redis.kind(SeverityInfo, "", "appendfsync is everysec",
		"with a crash of the host, about the last second of changes, and more while its disk is slow")
	FailedWrite = redis.kind(SeverityError, "",
		"its last snapshot failed, its last write to the append-only file failed, its last rewrite … failed",
		"the data that a restart does not find on disk")
	NoReplica = redis.kind(SeverityInfo, "; behind Sentinels and in a Cluster a warning", "no replica follows it",
		"if the disk fails, everything that waits")
	ReplicaBehind = redis.kind(SeverityWarning, "", "its replica … is behind (…, last heard of … s ago)",
		"with a failover, the changes that the replica does not have")
	ReplicaLacks = redis.kind(SeverityWarning, " from 1 MiB, or from `repl-backlog-size`",
		"its replica … lacks … of what was written",
		"with a failover, those changes")
	NoMinReplicas = redis.kind(SeverityWarning, ", behind Sentinels and in a Cluster", "min-replicas-to-write is 0",
		"the writes that an isolated master accepts; the writes that a failover loses")
	CountsBaton = redis.kind(SeverityWarning, "", "min-replicas-to-write counts baton as a replica",
		"each write reaches one replica less than you asked for. A `capture` needs one more")
	FailoverWaits = redis.kind(SeverityWarning, "", "a FAILOVER waits, and blocks writes until it ends",
		"all writes ([capture](sources.md#capture))")
	ShortBacklog = redis.kind(SeverityWarning, "", "its replication backlog (repl-backlog-size …) holds the writes of about …",
		"nothing; after an outage longer than that a `capture` reads all keys")
	FewReplicas = redis.kind(SeverityError, "", "… replicas follow it, and election.wait_replicas is …",
		"no node leads")
	NoScripts = redis.kind(SeverityError, "", "scripts are refused",
		"no node leads (without `acquire: setnx`), no job runs")
	NoPermission = redis.kind(SeverityError, "", "the redis user may not use …",
		"the job's flushes fail. The finding has the `ACL SETUSER` that grants it")
	NoInfo = redis.kind(SeverityWarning, "", "INFO is refused",
		"a Redis that restarts without its data goes unnoticed")
	UncheckedRedis = redis.kind(SeverityInfo, "",
		"its maxmemory-policy could not be checked; its persistence could …, its appendfsync could …, its clock could "+
			"…, the permissions of its user could …",
		"faults there show later")
	Stages = redis.kind(SeverityWarning, "", "changes are staged that no job flushes: …",
		"nothing yet: [what a job leaves](jobs.md#what-a-job-leaves)")
	StagesElsewhere = redis.kind(SeverityWarning, "",
		"changes may be staged beside … in store …, by job …, and that store is not configured any more",
		"nothing yet: [move a store](how-to/stores.md#move-a-store-to-another-server)")
	UncheckedStages = redis.kind(SeverityInfo, "", "the staged changes of removed jobs could not be checked",
		"")
	RedisFits = redis.kind(SeverityOK, "", "it answers",
		"\"and persists its data\" is added with `appendfsync always`, and nothing evicted; \"every second\" with `everysec`")
)
