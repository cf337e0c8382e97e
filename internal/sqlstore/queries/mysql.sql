-- name: session
-- STRICT_ALL_TABLES: a value that does not fit is an error, never cut.
-- NO_AUTO_VALUE_ON_ZERO: a 0 stays 0. autocommit, completion_type: a statement or a
-- COMMIT does just that, whatever the server's defaults are. The limits: MariaDB knows its own in its
-- own comments, MySQL those in the other ones; they throw off a leader that froze
-- inside a transaction.
SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_AUTO_VALUE_ON_ZERO,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION',
    time_zone = '+00:00',
    foreign_key_checks = 1,
    unique_checks = 1,
    autocommit = 1,
    completion_type = 'NO_CHAIN',
    innodb_lock_wait_timeout = {lock_seconds}
    /*M!100301 , max_statement_time = {statement_seconds}, idle_transaction_timeout = {idle_seconds} */
    /*!50708 , max_execution_time = {statement_millis}, wait_timeout = {idle_seconds} */

-- name: isolation
-- No gap locks, so that batches and the application wait less for each other.
-- Nothing here relies on reading the same thing twice, and every check is a
-- locking read, which sees the newest row at any level.
SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED

-- name: begin
START TRANSACTION

-- name: commit
COMMIT

-- name: rollback
ROLLBACK

-- name: fence_take
UPDATE {prefix}fence SET epoch = ?, owner = ?, node_id = ?, taken_at = UTC_TIMESTAMP(6) WHERE job = ? AND epoch < ?

-- name: fence_insert
INSERT INTO {prefix}fence (job, epoch, owner, node_id, taken_at) VALUES (?, ?, ?, ?, UTC_TIMESTAMP(6))

-- name: fence_read
SELECT epoch, owner FROM {prefix}fence WHERE job = ?

-- name: fence_check
-- Not FOR SHARE: MariaDB does not know it, and MySQL knows both.
SELECT epoch, owner FROM {prefix}fence WHERE job = ? LOCK IN SHARE MODE

-- name: fence_lock
SELECT epoch, owner FROM {prefix}fence WHERE job = ? FOR UPDATE

-- name: position_insert
INSERT INTO {prefix}position (job, shard, position) VALUES (?, ?, ?)

-- name: position_move
UPDATE {prefix}position SET position = ? WHERE job = ? AND shard = ? AND position = ?

-- name: positions
SELECT shard, position FROM {prefix}position WHERE job = ? AND shard IN (%s)

-- name: marks
SELECT name, total FROM {prefix}mark WHERE job = ? AND name IN (%s)

-- name: ledger_insert
-- A plain INSERT: with INSERT IGNORE a value that is too long would be cut.
INSERT INTO {prefix}ledger (job, batch_id, part, `rows`, applied_at) VALUES (?, ?, ?, ?, UTC_TIMESTAMP(6))

-- name: newest_batch
INSERT INTO {prefix}position (job, shard, position) VALUES (?, ?, ?) ON DUPLICATE KEY UPDATE position = VALUES(position)

-- name: prune
-- See Prune for why the newest batch of a shard stays.
DELETE FROM {prefix}ledger
WHERE applied_at < UTC_TIMESTAMP(6) - INTERVAL ? SECOND
  AND NOT EXISTS (SELECT 1 FROM {prefix}position AS p WHERE p.job = {prefix}ledger.job AND p.position = {prefix}ledger.batch_id)
ORDER BY applied_at LIMIT 1000

-- name: dead_insert
INSERT INTO {prefix}dead_letter (id, job, batch_id, record, error, at) VALUES (?, ?, ?, ?, ?, UTC_TIMESTAMP(6))

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

-- name: migrate_lock
SELECT GET_LOCK(SHA1(CONCAT('baton migrate ', DATABASE(), ' {prefix}')), {lock_seconds})

-- name: migrate_unlock
SELECT RELEASE_LOCK(SHA1(CONCAT('baton migrate ', DATABASE(), ' {prefix}')))

-- name: version_table
CREATE TABLE IF NOT EXISTS {prefix}schema_version (
    id bigint unsigned NOT NULL AUTO_INCREMENT PRIMARY KEY,
    version_id bigint NOT NULL,
    is_applied boolean NOT NULL,
    tstamp datetime NULL DEFAULT CURRENT_TIMESTAMP
) ENGINE=InnoDB

-- name: version_zero
INSERT INTO {prefix}schema_version (version_id, is_applied)
SELECT 0, true FROM DUAL WHERE NOT EXISTS (SELECT 1 FROM {prefix}schema_version WHERE version_id = 0)

-- name: version
SELECT max(version_id) FROM {prefix}schema_version WHERE is_applied

-- name: table
SELECT t.table_schema, t.table_name, t.table_type, COALESCE(e.transactions, 'NO'), COALESCE(t.engine, '')
FROM information_schema.tables t
LEFT JOIN information_schema.engines e ON e.engine = t.engine
WHERE t.table_schema = COALESCE(NULLIF(?, ''), DATABASE()) AND t.table_name = ?

-- name: columns
SELECT column_name, data_type, column_type, is_nullable = 'YES',
       COALESCE(column_default, 'NULL') <> 'NULL' OR extra LIKE '%auto_increment%',
       COALESCE(generation_expression, '') <> '',
       COALESCE(character_maximum_length, 0), COALESCE(character_octet_length, 0),
       COALESCE(numeric_precision, 0), COALESCE(numeric_scale, 0), COALESCE(datetime_precision, 0)
FROM information_schema.columns WHERE table_schema = ? AND table_name = ?
ORDER BY ordinal_position

-- name: unique
SELECT index_name, column_name, sub_part IS NOT NULL OR column_name IS NULL
FROM information_schema.statistics
WHERE table_schema = ? AND table_name = ? AND non_unique = 0
ORDER BY index_name <> 'PRIMARY', index_name, seq_in_index

-- name: table_names
SELECT table_name FROM information_schema.tables
WHERE table_schema = COALESCE(NULLIF(?, ''), DATABASE()) AND table_type = 'BASE TABLE' LIMIT 1000

-- name: stale_edge
-- The key that ends a stretch of the table, so that no statement reads more than one.
SELECT %[1]s FROM %[2]s WHERE %[3]s ORDER BY %[1]s LIMIT 1 OFFSET %[4]d

-- name: stale_count
-- A generation that is NULL or 0 is that of a row which no scan has written.
SELECT count(CASE WHEN %[1]s > 0 AND %[1]s <> %[4]s THEN 1 END), count(CASE WHEN %[1]s > 0 THEN 1 END) FROM %[2]s WHERE %[3]s

-- name: stale_rows
SELECT %[1]s, %[5]s FROM %[2]s WHERE %[3]s AND %[5]s > 0 AND %[5]s <> %[6]s ORDER BY %[1]s LIMIT %[4]d
