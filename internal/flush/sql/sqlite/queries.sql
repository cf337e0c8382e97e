-- name: begin
-- IMMEDIATE takes the only write lock at once: from here on nobody else changes
-- the fence, and no statement in the transaction can find the database busy.
BEGIN IMMEDIATE

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
-- cid -2 is an expression; key 0 is a column that is only stored along.
SELECT l.seq, x.name, x.cid = -2
FROM pragma_index_list(?1, ?2) AS l, pragma_index_xinfo(l.name, ?2) AS x
WHERE l."unique" AND NOT l.partial AND x.key
ORDER BY l.origin <> 'pk', l.seq, x.seqno

-- name: folds
-- By which collation a column or one of its unique indexes holds texts for equal that are not. A
-- compound compares as the column of its first part does.
SELECT COALESCE(
    (SELECT max(upper(x.coll)) FROM pragma_index_list(?1, ?2) AS l, pragma_index_xinfo(l.name, ?2) AS x
     WHERE l."unique" AND x.key AND x.name = ?3 AND x.coll <> 'BINARY' COLLATE NOCASE),
    (SELECT CASE WHEN probe = 'a' THEN 'NOCASE' WHEN probe = 'A ' THEN 'RTRIM' END
     FROM (SELECT %[1]s AS probe FROM %[2]s WHERE 0 UNION ALL SELECT 'A')),
    '')

-- name: deferred_keys
-- Of a schema the foreign keys that are checked at COMMIT, of a table and of those that refer to it.
SELECT m.name, f."table", f.seq, f."from",
       COALESCE(f."to", (SELECT x.name FROM pragma_table_info(f."table", ?1) AS x WHERE x.pk = f.seq + 1), '')
FROM %s.sqlite_master AS m, pragma_foreign_key_list(m.name, ?1) AS f
WHERE m.type = 'table' AND m.sql LIKE '%%DEFERR%%' AND (m.name = ?2 COLLATE NOCASE OR f."table" = ?2 COLLATE NOCASE)
ORDER BY m.name, f.id, f.seq

-- name: table_names
SELECT name FROM pragma_table_list WHERE schema = ? AND type = 'table' AND name NOT LIKE 'sqlite\_%' ESCAPE '\' LIMIT 1000
