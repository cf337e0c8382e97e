-- name: begin
-- IMMEDIATE takes the only write lock at once: from here on nobody else changes
-- the fence, and no statement in the transaction can find the database busy.
BEGIN IMMEDIATE

-- name: commit
COMMIT

-- name: rollback
ROLLBACK

-- name: fence_take
UPDATE {prefix}fence SET epoch = ?, owner = ?, node_id = ?, taken_at = strftime('%Y-%m-%d %H:%M:%f', 'now') WHERE job = ? AND epoch < ?

-- name: fence_insert
INSERT INTO {prefix}fence (job, epoch, owner, node_id, taken_at) VALUES (?, ?, ?, ?, strftime('%Y-%m-%d %H:%M:%f', 'now')) ON CONFLICT (job) DO NOTHING

-- name: fence_read
SELECT epoch, owner FROM {prefix}fence WHERE job = ?

-- name: fence_check
-- BEGIN IMMEDIATE has locked it already.
SELECT epoch, owner FROM {prefix}fence WHERE job = ?

-- name: fence_lock
-- BEGIN IMMEDIATE has locked it already.
SELECT epoch, owner FROM {prefix}fence WHERE job = ?

-- name: position_insert
INSERT INTO {prefix}position (job, shard, position) VALUES (?, ?, ?) ON CONFLICT (job, shard) DO NOTHING

-- name: position_move
UPDATE {prefix}position SET position = ? WHERE job = ? AND shard = ? AND position = ?

-- name: positions
SELECT shard, position FROM {prefix}position WHERE job = ? AND shard IN (%s)

-- name: marks
SELECT name, total FROM {prefix}mark WHERE job = ? AND name IN (%s)

-- name: ledger_insert
INSERT INTO {prefix}ledger (job, batch_id, part, "rows", applied_at) VALUES (?, ?, ?, ?, strftime('%Y-%m-%d %H:%M:%f', 'now')) ON CONFLICT (job, batch_id, part) DO NOTHING

-- name: newest_batch
INSERT INTO {prefix}position (job, shard, position) VALUES (?, ?, ?) ON CONFLICT (job, shard) DO UPDATE SET position = excluded.position

-- name: prune
-- See Prune for why the newest batch of a shard stays.
DELETE FROM {prefix}ledger WHERE (job, batch_id, part) IN (
    SELECT l.job, l.batch_id, l.part FROM {prefix}ledger AS l
    WHERE l.applied_at < strftime('%Y-%m-%d %H:%M:%f', 'now', '-' || ? || ' seconds')
      AND NOT EXISTS (SELECT 1 FROM {prefix}position AS p WHERE p.job = l.job AND p.position = l.batch_id)
    ORDER BY l.applied_at LIMIT 1000)

-- name: dead_insert
INSERT INTO {prefix}dead_letter (id, job, batch_id, record, error, at) VALUES (?, ?, ?, ?, ?, strftime('%Y-%m-%d %H:%M:%f', 'now')) ON CONFLICT (id) DO NOTHING

-- name: dead_delete
DELETE FROM {prefix}dead_letter WHERE id = ? AND job = ?

-- name: dead_drop
DELETE FROM {prefix}dead_letter WHERE id = ?

-- name: dead_list
-- The condition stands for %s. Here and below a parameter is a ? in every database.
SELECT id, job, batch_id, at, error, substr(record, 1, ?) FROM {prefix}dead_letter %s ORDER BY at DESC, id LIMIT ?

-- name: dead_keys
SELECT at, id, job FROM {prefix}dead_letter %s ORDER BY {prefix}dead_letter.at, id LIMIT ?

-- name: dead_reasons
SELECT job, error, count(*), min(at), max(at), min(id) FROM {prefix}dead_letter %s GROUP BY job, error

-- name: version_table
CREATE TABLE IF NOT EXISTS {prefix}schema_version (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    version_id INTEGER NOT NULL,
    is_applied INTEGER NOT NULL,
    tstamp TIMESTAMP DEFAULT (datetime('now'))
)

-- name: version_zero
INSERT INTO {prefix}schema_version (version_id, is_applied)
SELECT 0, 1 WHERE NOT EXISTS (SELECT 1 FROM {prefix}schema_version WHERE version_id = 0)

-- name: version
SELECT max(version_id) FROM {prefix}schema_version WHERE is_applied

-- name: table
SELECT name, type FROM pragma_table_list WHERE schema = ? AND name = ? COLLATE NOCASE

-- name: columns
SELECT name, type, "notnull", upper(COALESCE(dflt_value, 'NULL')) <> 'NULL', pk, hidden FROM pragma_table_xinfo(?, ?) ORDER BY cid

-- name: unique
-- cid -2 is an expression; key 0 is a column that is only stored along.
SELECT l.seq, x.name, x.cid = -2
FROM pragma_index_list(?1, ?2) AS l, pragma_index_xinfo(l.name, ?2) AS x
WHERE l."unique" AND NOT l.partial AND x.key
ORDER BY l.origin <> 'pk', l.seq, x.seqno

-- name: deferred_keys
-- Of a schema the foreign keys that are checked at COMMIT, of a table and of those that refer to it.
SELECT m.name, f."table", f.seq, f."from",
       COALESCE(f."to", (SELECT x.name FROM pragma_table_info(f."table", ?1) AS x WHERE x.pk = f.seq + 1), '')
FROM %s.sqlite_master AS m, pragma_foreign_key_list(m.name, ?1) AS f
WHERE m.type = 'table' AND m.sql LIKE '%%DEFERR%%' AND (m.name = ?2 COLLATE NOCASE OR f."table" = ?2 COLLATE NOCASE)
ORDER BY m.name, f.id, f.seq

-- name: table_names
SELECT name FROM pragma_table_list WHERE schema = ? AND type = 'table' AND name NOT LIKE 'sqlite\_%' ESCAPE '\' LIMIT 1000

-- name: stale_edge
-- The key that ends a stretch of the table, so that no statement reads more than one.
SELECT %[1]s FROM %[2]s WHERE %[3]s ORDER BY %[1]s LIMIT 1 OFFSET %[4]d

-- name: stale_count
-- A generation that is NULL or 0 is that of a row which no scan has written.
SELECT count(CASE WHEN %[1]s > 0 AND %[1]s <> %[4]s THEN 1 END), count(CASE WHEN %[1]s > 0 THEN 1 END) FROM %[2]s WHERE %[3]s

-- name: stale_rows
SELECT %[1]s, %[5]s FROM %[2]s WHERE %[3]s AND %[5]s > 0 AND %[5]s <> %[6]s ORDER BY %[1]s LIMIT %[4]d
