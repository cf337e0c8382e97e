package sqlite

import (
	"context"
	dbsql "database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	sqlite3 "modernc.org/sqlite/lib"

	"modernc.org/sqlite"

	"baton/internal/finding"
	"baton/internal/flush/sql"
	"baton/internal/flush/sql/stdsql"
)

// Absent adds a finding if the file is missing. It does not open the file, because that would create it.
func (d database) Absent(r *sql.Report) bool {
	_, err := os.Stat(d.path)
	dir := filepath.Dir(d.path)
	switch {
	case err == nil:
		return false
	case !errors.Is(err, fs.ErrNotExist):
		r.Add(finding.UnusableFile, fmt.Sprintf("file %s cannot be read: %v", d.path, err), sql.FailsForNow,
			"give baton's user the right to enter and write the directory "+dir)
	default:
		if _, err := os.Stat(dir); err != nil {
			r.Add(finding.UnusableFile, fmt.Sprintf("the directory of file %s cannot be used: %v", d.path, err), sql.FailsForNow,
				"create it for baton's user, or correct the dsn")
			break
		}
		if err := writable(dir); err != nil {
			directory(r, dir, err)
			break
		}
		if r.Created {
			r.Add(finding.NoFileYet, fmt.Sprintf("file %s is not there yet", d.path), "the first flush creates it, with its tables",
				"nothing to do, unless the dsn names the wrong file")
			break
		}
		r.Add(finding.NoFile, fmt.Sprintf("file %s is not there", d.path),
			"the first flush creates it, but not the tables of jobs without `schema: create`: these jobs fail",
			"correct the dsn if the file exists elsewhere, or create the file with the tables")
	}
	return true
}

func directory(r *sql.Report, dir string, err error) {
	r.Add(finding.UnusableFile, fmt.Sprintf("directory %s is not writable: %v", dir, err),
		"SQLite keeps its log beside the file: "+sql.FailsForNow,
		"give it to baton's user; in a systemd unit, name it under ReadWritePaths=")
}

func (d database) Inspect(ctx context.Context, q sql.Queries, r *sql.Report) {
	dir := filepath.Dir(d.path)
	if err := writable(dir); err != nil {
		directory(r, dir, err)
	}
	if magic, ok := fileSystem(dir); ok {
		judgeFileSystem(r, d.path, magic)
	}
	conn, err := d.Pool.Conn(ctx)
	if err != nil {
		r.Unchecked("the file", err)
		return
	}
	defer func() { _ = conn.Close() }() // returns the connection to the pool
	var journal string
	var synchronous int
	if err := conn.QueryRowContext(ctx, q["pragmas"]).Scan(&journal, &synchronous); err != nil {
		r.Unchecked("the file's settings", err)
		return
	}
	r.Version = "SQLite, journal_mode " + journal
	durability(journal, synchronous, r)
	if err := try(ctx, conn, q["try"]); err != nil {
		cannotWrite(r, d.path, err)
	}
}

// try runs a write in a transaction that is rolled back, also when ctx ends during the write. If a connection returned to the pool with an
// open transaction, it would keep the write lock, and every flush would wait until the pool closes idle connections.
func try(ctx context.Context, conn *dbsql.Conn, text string) error {
	tx, err := conn.BeginTx(ctx, nil) // begins with BEGIN IMMEDIATE
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // fails only if ctx has already rolled back
	_, err = tx.ExecContext(ctx, text)
	return err
}

// durability checks which commits may be undone by a power failure.
func durability(journal string, synchronous int, r *sql.Report) {
	const full = 2
	if synchronous < full {
		r.Add(finding.UnsafeFile, fmt.Sprintf("synchronous is %d in baton's session, although it asks for FULL", synchronous),
			"when the power fails, "+sql.GoneForGood+" are missing", "remove synchronous from the dsn")
	}
	switch strings.ToLower(journal) {
	case "off", "memory":
		r.Add(finding.UnsafeFile, "journal_mode is "+journal+" although baton asks for WAL",
			"a crash in the middle of a batch damages the file", "close the file in all other programs, and run PRAGMA journal_mode = WAL")
	case "wal":
	default:
		r.Add(finding.NotWAL, "journal_mode is "+journal+" although baton asks for WAL: the file system does not support it, or "+
			"another program holds the file",
			"nothing is lost; readers and the flush wait for each other",
			"close the file in all other programs, and run PRAGMA journal_mode = WAL")
	}
}

// cannotWrite explains why a write transaction could not begin.
func cannotWrite(r *sql.Report, path string, err error) {
	busy := errors.Is(err, context.DeadlineExceeded)
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		busy = busy || e.Code()&0xff == sqlite3.SQLITE_BUSY
	}
	if busy {
		r.Add(finding.LockedFile, fmt.Sprintf("another program holds the write lock of file %s", path),
			"a flush waits for it, and fails if it waits too long",
			"let that program end its transactions sooner; run `fuser` on the file to find the program")
		return
	}
	r.Add(finding.UnusableFile, fmt.Sprintf("file %s cannot be written: %v", path, err), sql.FailsForNow,
		"give it and its directory to baton's user; in a systemd unit, name them under ReadWritePaths=")
}

// judgeFileSystem adds findings about the file system that contains the file.
func judgeFileSystem(r *sql.Report, path string, magic int64) {
	name, kind := kindOfFileSystem(magic)
	switch kind {
	case remoteFiles:
		r.Add(finding.NetworkFile, fmt.Sprintf("file %s lies on a network file system (%s)", path, name),
			"locks between hosts do not work there as SQLite needs them, so two nodes can damage the file, with all data in it",
			"put the file on a local disk, or use a database server")
	case forgottenFiles:
		r.Add(finding.FileInMemory, fmt.Sprintf("file %s lies in memory (%s)", path, name),
			"a restart of the host loses it: "+sql.GoneForGood, "put it on a disk")
	case layeredFiles:
		r.Add(finding.FileInLayer, fmt.Sprintf("file %s lies in a container's own layer (%s)", path, name),
			"the file is lost with the container: "+sql.GoneForGood, "put it on a volume")
	case unknownFiles:
		r.Add(finding.FileOnFUSE, fmt.Sprintf("file %s lies on %s, which may be a network file system", path, name),
			"on a network file system, locks between hosts may not work, and two nodes can damage the file",
			"if it is a network file system, put the file on a local disk")
	}
}

// files is the class of a file system. In some classes the file of a database can be lost or damaged.
type files uint8

const (
	localFiles files = iota
	remoteFiles
	forgottenFiles // lost when the host restarts
	layeredFiles   // lost with the container
	unknownFiles
)

// kindOfFileSystem returns the name and the class of a file system, by its magic number of statfs(2).
func kindOfFileSystem(magic int64) (name string, kind files) {
	switch uint32(magic) {
	case 0x6969:
		return "NFS", remoteFiles
	case 0x517b, 0xff534d42, 0xfe534d42:
		return "SMB", remoteFiles
	case 0x5346414f, 0x6b414653:
		return "AFS", remoteFiles
	case 0x00c36400:
		return "Ceph", remoteFiles
	case 0x01021997:
		return "9P", remoteFiles
	case 0x0bd00bd0:
		return "Lustre", remoteFiles
	case 0x01021994:
		return "tmpfs", forgottenFiles
	case 0x858458f6:
		return "ramfs", forgottenFiles
	case 0x794c7630:
		return "overlayfs", layeredFiles
	case 0x65735546:
		return "FUSE", unknownFiles
	}
	return "", localFiles
}

func (d database) InspectTable(ctx context.Context, q sql.Queries, t sql.PreflightTable, r *sql.Report) {
	schema, table := quote.Schema(t.Plan.Table.Name)
	if schema == "" {
		schema = "main"
	}
	triggers, err := stdsql.Collect(ctx, d.Pool, strings.ReplaceAll(q["schema"], "{schema}", quote.Ident(schema)), stdsql.ScanName,
		table)
	if err != nil {
		r.Unchecked("table "+table, err)
		return
	}
	r.Triggers(table, triggers)
	indexes, err := stdsql.IndexesOf(ctx, d.DB, q["indexes"], table, schema)
	if err != nil {
		r.Unchecked("the unique indexes of table "+table, err)
		return
	}
	r.OtherUnique(t.Plan, indexes, finding.SeverityInfo, "")
}
