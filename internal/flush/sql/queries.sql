-- What every dialect says alike. A dialect's own file replaces what it says otherwise, and has the rest. A
-- parameter is a ?, and the words in braces are those of the dialect.

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
-- The dialect's list stands for %s.
SELECT shard, position FROM {prefix}position WHERE job = ? AND shard %s

-- name: marks
SELECT name, total FROM {prefix}mark WHERE job = ? AND name %s

-- name: ledger_insert
INSERT INTO {prefix}ledger (job, batch_id, part, "rows", applied_at) VALUES (?, ?, ?, ?, {now}) ON CONFLICT (job, batch_id, part) DO NOTHING

-- name: newest_batch
INSERT INTO {prefix}position (job, shard, position) VALUES (?, ?, ?) ON CONFLICT (job, shard) DO UPDATE SET position = excluded.position

-- name: prune
-- See Prune for why the newest batch of a shard stays. What is of another election is for that to prune.
DELETE FROM {prefix}ledger WHERE (job, batch_id, part) IN (
    SELECT l.job, l.batch_id, l.part FROM {prefix}ledger AS l
    WHERE l.applied_at < {ago}
      AND NOT EXISTS (SELECT 1 FROM {prefix}position AS p WHERE p.job = l.job AND p.position = l.batch_id)
      AND NOT EXISTS (SELECT 1 FROM {prefix}fence AS f WHERE f.job = l.job AND f.lock_key <> '' AND f.lock_key <> ?)
    ORDER BY l.applied_at LIMIT 1000)

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
-- Here and below the condition stands for %s.
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
-- Between the making of the table and its first row there is no version yet.
SELECT coalesce(max(version_id), 0) FROM {prefix}schema_version WHERE is_applied

-- name: version_done
INSERT INTO {prefix}schema_version (version_id, is_applied) VALUES (%d, true)

-- name: stale_edge
-- The key that ends a stretch of the table, so that no statement reads more than one.
SELECT %[1]s FROM %[2]s WHERE %[3]s ORDER BY %[1]s LIMIT 1 OFFSET %[4]d

-- name: stale_count
-- A generation that is NULL or 0 is that of a row which no scan has written.
SELECT count(CASE WHEN %[1]s > 0 AND %[1]s <> ? THEN 1 END), count(CASE WHEN %[1]s > 0 THEN 1 END) FROM %[2]s WHERE %[3]s

-- name: key_rows
SELECT %[1]s FROM %[2]s WHERE %[3]s%[4]s LIMIT %[5]d

-- name: rows
SELECT %[1]s FROM %[2]s WHERE %[3]s

-- name: stale_rows
SELECT %[1]s, %[5]s FROM %[2]s WHERE %[3]s AND %[5]s > 0 AND %[5]s <> ? ORDER BY %[1]s LIMIT %[4]d
