-- These are the queries that all dialects share. The file of a dialect replaces the queries that differ, and adds the queries
-- that are missing here. A parameter is a ?, and the dialect replaces the words in braces.

-- name: commit
COMMIT

-- name: rollback
ROLLBACK

-- name: fence_take
UPDATE {prefix}fence SET epoch = ?, owner = ?, node_id = ?, lease_ms = ?, lock_key = ?, taken_at = {now}
WHERE job = ? AND epoch < ? AND (lock_key = '' OR lock_key = ?)

-- name: fence_election
SELECT lock_key FROM {prefix}fence WHERE job = ?

-- name: fence_others
SELECT job FROM {prefix}fence WHERE lock_key <> '' AND lock_key <> ?

-- name: fence_reset
UPDATE {prefix}fence SET epoch = ?, owner = ?, node_id = ?, lease_ms = ?, taken_at = {now} WHERE job = ? AND epoch = ? AND owner = ?

-- name: fence_insert
INSERT INTO {prefix}fence (job, epoch, owner, node_id, lease_ms, lock_key, taken_at) VALUES (?, ?, ?, ?, ?, ?, {now}) ON CONFLICT (job) DO NOTHING

-- name: fence_read
SELECT epoch, owner, lease_ms FROM {prefix}fence WHERE job = ?

-- name: fence_check
SELECT epoch, owner, lease_ms FROM {prefix}fence WHERE job = ?{share}

-- name: fence_lock
SELECT epoch, owner, lease_ms FROM {prefix}fence WHERE job = ?{update}

-- name: position_insert
INSERT INTO {prefix}position (job, shard, position) VALUES (?, ?, ?) ON CONFLICT (job, shard) DO NOTHING

-- name: position_move
UPDATE {prefix}position SET position = ? WHERE job = ? AND shard = ? AND position = ?

-- name: positions
-- The dialect's condition for a list of values replaces %s.
SELECT shard, position FROM {prefix}position WHERE job = ? AND shard %s

-- name: marks
SELECT name, total FROM {prefix}mark WHERE job = ? AND name %s

-- name: ledger_insert
INSERT INTO {prefix}ledger (job, batch_id, part, "rows", applied_at) VALUES (?, ?, ?, ?, {now}) ON CONFLICT (job, batch_id, part) DO NOTHING

-- name: newest_batch
INSERT INTO {prefix}position (job, shard, position) VALUES (?, ?, ?) ON CONFLICT (job, shard) DO UPDATE SET position = excluded.position

-- name: prune
-- The comment of Prune gives the reason why the newest batch of a shard stays. Each election prunes only its own entries.
DELETE FROM {prefix}ledger WHERE (job, batch_id, part) IN (
    SELECT l.job, l.batch_id, l.part FROM {prefix}ledger AS l
    WHERE l.applied_at < {ago}
      AND NOT EXISTS (SELECT 1 FROM {prefix}position AS p WHERE p.job = l.job AND p.position = l.batch_id)
      AND NOT EXISTS (SELECT 1 FROM {prefix}fence AS f WHERE f.job = l.job AND f.lock_key <> '' AND f.lock_key <> ?)
    ORDER BY l.applied_at LIMIT ?)

-- name: kept_read
-- Arguments: the clock, the columns, the table, the condition and the key. The locks prevent changes between the reading and the deletion.
SELECT %[1]s, %[2]s FROM %[3]s WHERE %[4]s ORDER BY %[5]s{update}

-- name: kept_take_back
-- The index finds keep_until, so that the statement does not read all kept rows of the job.
DELETE FROM {prefix}deleted WHERE keep_until = ? AND lock_key = ? AND job = ? AND row_key = ? AND at = ?

-- name: kept_list
-- The time at which the row was put back replaces %[1]s, and a condition replaces %[2]s.
SELECT id, job, table_name, row_key, why, epoch, {at}, {keep_until}, %[1]s, CASE WHEN length(old_row) > ? THEN '' ELSE old_row END
FROM {prefix}deleted %[2]s ORDER BY id DESC LIMIT ?

-- name: kept_count
-- A condition replaces %s. The query reads a limited number of rows, because a job may have kept millions of rows.
SELECT n, {keep_until} FROM (
    SELECT count(*) AS n, min(keep_until) AS keep_until FROM (
        SELECT keep_until FROM {prefix}deleted %s ORDER BY id LIMIT ?) AS oldest) AS counted

-- name: kept_lock
SELECT {put_back_at} FROM {prefix}deleted WHERE id = ?{update}

-- name: kept_put_back
UPDATE {prefix}deleted SET put_back_at = {now} WHERE id = ?

-- name: kept_restore
INSERT INTO %[1]s (%[2]s) VALUES (%[3]s)

-- name: kept_prune
DELETE FROM {prefix}deleted WHERE id IN (
    SELECT id FROM {prefix}deleted WHERE keep_until < {now} ORDER BY keep_until LIMIT ?)

-- name: dead_insert
INSERT INTO {prefix}dead_letter (id, job, batch_id, record, error, at) VALUES (?, ?, ?, ?, ?, {now}) ON CONFLICT (id) DO NOTHING

-- name: dead_delete
DELETE FROM {prefix}dead_letter WHERE id = ? AND job = ?

-- name: dead_drop
DELETE FROM {prefix}dead_letter WHERE id = ?

-- name: dead_part_insert
INSERT INTO {prefix}dead_letter_part (id, part, record) VALUES (?, ?, ?) ON CONFLICT (id, part) DO NOTHING

-- name: dead_parts_drop
DELETE FROM {prefix}dead_letter_part WHERE id = ?

-- name: dead_parts
SELECT record FROM {prefix}dead_letter_part WHERE id = ? ORDER BY part

-- name: dead_list
-- In this query and the queries below, a condition replaces %s.
SELECT id, job, batch_id, {at}, error, substr(record, 1, ?) FROM {prefix}dead_letter %s ORDER BY at DESC, id LIMIT ?

-- name: dead_keys
SELECT {at}, id, job FROM {prefix}dead_letter %s ORDER BY {prefix}dead_letter.at, id LIMIT ?

-- name: dead_waiting
SELECT job, count(*) FROM {prefix}dead_letter %s GROUP BY job

-- name: dead_reasons
SELECT job, error, count(*), min({at}), max({at}), min(id) FROM {prefix}dead_letter %s GROUP BY job, error

-- name: version_zero
INSERT INTO {prefix}schema_version (version_id, is_applied)
SELECT 0, true WHERE NOT EXISTS (SELECT 1 FROM {prefix}schema_version WHERE version_id = 0)

-- name: version
-- The table may exist before its first row. In that case the version is 0.
SELECT coalesce(max(version_id), 0) FROM {prefix}schema_version WHERE is_applied

-- name: version_done
INSERT INTO {prefix}schema_version (version_id, is_applied) VALUES (%d, true)

-- name: stale_edge
-- This returns the key that ends a stretch of the table, so that no statement reads more than one stretch.
SELECT %[1]s FROM %[2]s WHERE %[3]s ORDER BY %[1]s LIMIT 1 OFFSET %[4]d

-- name: stale_count
-- If the generation of a row is NULL or 0, no scan has written the row.
SELECT count(CASE WHEN %[1]s > 0 AND %[1]s <> ? THEN 1 END), count(CASE WHEN %[1]s > 0 THEN 1 END) FROM %[2]s WHERE %[3]s

-- name: key_rows
SELECT %[1]s FROM %[2]s WHERE %[3]s%[4]s LIMIT %[5]d

-- name: rows
SELECT %[1]s FROM %[2]s WHERE %[3]s

-- name: stale_rows
SELECT %[1]s, %[5]s FROM %[2]s WHERE %[3]s AND %[5]s > 0 AND %[5]s <> ? ORDER BY %[1]s LIMIT %[4]d
