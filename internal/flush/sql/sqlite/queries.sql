-- name: begin
-- IMMEDIATE takes the only write lock at once. From here on no other process can change the
-- fence, and no statement in the transaction can find the database busy. SQLite itself does not wait for the lock, because a wait of
-- SQLite cannot be cancelled: see the session in database.go.
PRAGMA busy_timeout = 0; BEGIN IMMEDIATE; PRAGMA busy_timeout = {lock_ms}

-- name: version_table
CREATE TABLE IF NOT EXISTS {prefix}schema_version (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    version_id INTEGER NOT NULL,
    is_applied INTEGER NOT NULL,
    tstamp TIMESTAMP DEFAULT (datetime('now'))
)

-- name: table
SELECT name, type, (SELECT schema_version FROM pragma_schema_version) FROM pragma_table_list WHERE schema = ? AND name = ? COLLATE NOCASE

-- name: columns
SELECT name, type, "notnull", upper(COALESCE(dflt_value, 'NULL')) <> 'NULL', COALESCE(dflt_value, ''), pk, hidden FROM pragma_table_xinfo(?, ?) ORDER BY cid

-- name: unique
-- The cid -2 means an expression. The key 0 means a column that is stored in the index but does not belong to its key.
SELECT l.seq, x.name, x.cid = -2
FROM pragma_index_list(?1, ?2) AS l, pragma_index_xinfo(l.name, ?2) AS x
WHERE l."unique" AND NOT l.partial AND x.key
ORDER BY l.origin <> 'pk', l.seq, x.seqno

-- name: folds
-- This returns the collation by which a column, or one of its unique indexes, treats different texts as equal. A compound
-- SELECT compares with the collation of its first SELECT.
SELECT COALESCE(
    (SELECT max(upper(x.coll)) FROM pragma_index_list(?1, ?2) AS l, pragma_index_xinfo(l.name, ?2) AS x
     WHERE l."unique" AND x.key AND x.name = ?3 AND x.coll <> 'BINARY' COLLATE NOCASE),
    (SELECT CASE WHEN probe = 'a' THEN 'NOCASE' WHEN probe = 'A ' THEN 'RTRIM' END
     FROM (SELECT %[1]s AS probe FROM %[2]s WHERE 0 UNION ALL SELECT 'A')),
    '')

-- name: deferred_keys
-- This returns the foreign keys of a table, and the foreign keys of other tables that refer to it. Only tables with a key that is
-- checked at COMMIT are read.
SELECT m.name, f."table", f.seq, f."from",
       COALESCE(f."to", (SELECT x.name FROM pragma_table_info(f."table", ?1) AS x WHERE x.pk = f.seq + 1), '')
FROM %s.sqlite_master AS m, pragma_foreign_key_list(m.name, ?1) AS f
WHERE m.type = 'table' AND m.sql LIKE '%%DEFERR%%' AND (m.name = ?2 COLLATE NOCASE OR f."table" = ?2 COLLATE NOCASE)
ORDER BY m.name, f.id, f.seq

-- name: table_names
SELECT name FROM pragma_table_list WHERE schema = ? AND type = 'table' AND name NOT LIKE 'sqlite\_%' ESCAPE '\' LIMIT 1000

-- name: kept_restore
-- OR ABORT replaces the ON CONFLICT of an index, which could delete the row that has the same unique value.
INSERT OR ABORT INTO %[1]s (%[2]s) VALUES (%[3]s)

-- name: kept_take_back
-- The + prevents the use of the index of jobs, under which a job may have very many rows.
DELETE FROM {prefix}deleted WHERE keep_until = ? AND +lock_key = ? AND +job = ? AND row_key = ? AND at = ?
