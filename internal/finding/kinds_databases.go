package finding

// These are the kinds of findings about every type of database.
var (
	databases = &Table{Name: "databases"}

	DatabaseFits = databases.kind(SeverityOK, "", "it answers, and keeps confirmed commits",
		"")
	UncheckedDatabase = databases.kind(SeverityInfo, "", "its table could not be checked, … could not be checked",
		"faults of the table appear at the first flush")
)

// These are the kinds of findings about PostgreSQL.
var (
	postgres = &Table{Name: "postgres"}

	Standby = postgres.kind(SeverityError, "", "the server is read-only: it is a standby",
		"every batch")
	ReadOnlyUser = postgres.kind(SeverityError, "", "it is read-only for this user: default_transaction_read_only is on",
		"every batch: an operator froze the role or the database")
	NoFsync = postgres.kind(SeverityError, "", "fsync is off",
		"with a crash of the host, the whole database")
	NoFullPageWrites = postgres.kind(SeverityWarning, "", "full_page_writes is off",
		"pages that were being written when the power failed")
	AsyncStandbys = postgres.kind(SeverityWarning, "", "its standbys are asynchronous",
		"the last batches, when a standby takes over")
	NarrowEncoding = postgres.kind(SeverityWarning, "", "the database's encoding is …: it cannot hold every character",
		"records with others become dead letters")
	NoChecks = postgres.kind(SeverityInfo, "", "data checksums are off; the database's encoding is SQL_ASCII",
		"damaged pages go unnoticed; no text is checked")
	NoRightToCreate = postgres.kind(SeverityError, "", "this user may not create baton's tables",
		"every batch fails (PostgreSQL 15 and newer grant no right to create in `public`)")
	NoRightToTable = postgres.kind(SeverityError, "", "this user has no right to … on table …",
		"every batch fails; rights to columns are enough")
	NoRightToSequence = postgres.kind(SeverityError, "", "this user has no right to USAGE on sequence …",
		"every batch with a new row fails")
	Unlogged = postgres.kind(SeverityError, "", "table … is UNLOGGED",
		"with a crash, the whole table")
	Rules = postgres.kind(SeverityError, "", "table … has rules",
		"PostgreSQL refuses `ON CONFLICT` there")
	RowSecurity = postgres.kind(SeverityWarning, "", "row-level security hides rows of table …",
		"hidden rows cannot be changed: they become dead letters, or stay as they were")
)

// These are the kinds of findings about MySQL and MariaDB.
var (
	mysql = &Table{Name: "mysql"}

	LogNotFlushed = mysql.kind(SeverityError, "", "innodb_flush_log_at_trx_commit is 0 or 2",
		"with a crash of the server (0) or its host (2), the last second")
	BinlogNotSynced = mysql.kind(SeverityError, "", "the binary log is on, and sync_binlog is not 1",
		"batches that the binary log on disk does not have. MariaDB's default is 0")
	StatementBinlog = mysql.kind(SeverityError, "", "binlog_format is STATEMENT",
		"every batch: InnoDB refuses it at `READ COMMITTED`")
	NoDoublewrite = mysql.kind(SeverityWarning, "", "innodb_doublewrite is off",
		"pages that were being written when the power failed")
	ReadOnly = mysql.kind(SeverityError, "", "read_only, super_read_only, tx_read_only, … is on: the server is read-only",
		"every batch: it is a replica, or an operator froze it")
	Galera = mysql.kind(SeverityInfo, "", "the server is part of a Galera cluster",
		"nodes may write through different servers; lanes commit one after the other, and undo each other's work "+
			"across servers")
	SeveralPrimaries = mysql.kind(SeverityWarning, "", "the server is part of a group with several primaries",
		"the fence does not reach across servers: let all nodes write to the same one")
	LostSession = mysql.kind(SeverityWarning, "", "the session's settings are not what baton asks for",
		"a proxy drops them")
	Denied = mysql.kind(SeverityError, "", "this user may not create, or lacks rights to, baton's tables; … to table …",
		"every batch fails; the server's own message names the right")
	NarrowColumns = mysql.kind(SeverityWarning, "", "columns of table … cannot hold every character",
		"a record with an emoji becomes a dead letter")
)

// These are the kinds of findings about SQLite.
var (
	sqlite = &Table{Name: "sqlite"}

	NetworkFile = sqlite.kind(SeverityError, "", "file … lies on a network file system",
		"the whole file: locks between hosts do not work there")
	FileInMemory = sqlite.kind(SeverityError, "", "file … lies in memory",
		"the whole file, with a restart of the host")
	FileInLayer = sqlite.kind(SeverityWarning, "", "file … lies in a container's own layer",
		"the whole file, with the container")
	FileOnFUSE = sqlite.kind(SeverityInfo, "", "file … lies on FUSE, which may be a network file system",
		"")
	UnusableFile = sqlite.kind(SeverityError, "",
		"file … cannot be written, or cannot be read; directory … is not writable; the directory of file … cannot be used",
		"every batch fails; SQLite keeps its log beside the file")
	NoFile = sqlite.kind(SeverityWarning, "", "file … is not there",
		"the first flush makes it, without the jobs' tables")
	NoFileYet = sqlite.kind(SeverityInfo, "", "file … is not there yet",
		"the first flush makes it, with its tables: every job has `schema: create`")
	LockedFile = sqlite.kind(SeverityWarning, "", "another program holds the write lock",
		"nothing; the flush waits")
	UnsafeFile = sqlite.kind(SeverityError, "",
		"synchronous is … in baton's session, journal_mode is off or memory although baton asks for WAL",
		"if the power fails, the last batches, or the file")
	NotWAL = sqlite.kind(SeverityInfo, "",
		"journal_mode is … although baton asks for WAL: the file system does not support it, or another program holds "+
			"the file",
		"nothing; readers and the flush wait for each other")
)
