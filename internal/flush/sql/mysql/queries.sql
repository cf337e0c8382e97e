-- name: session
-- STRICT_ALL_TABLES: a value that does not fit is an error, never cut.
-- NO_AUTO_VALUE_ON_ZERO: a 0 stays 0. autocommit, completion_type: a statement or a
-- COMMIT does just that, whatever the server's defaults are. The limits: MariaDB knows its own in its
-- own comments, MySQL those in the other ones; they throw off a leader that froze
-- inside a transaction. A limit of the server, or of the user, stays if it is less than ours; whether
-- transactions may write is the server's decision alone. CAST: MySQL takes no decimal for a limit, and LEAST makes one of an
-- unsigned number and a signed one.
SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_AUTO_VALUE_ON_ZERO,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION',
    time_zone = '+00:00',
    foreign_key_checks = 1,
    unique_checks = 1,
    autocommit = 1,
    completion_type = 'NO_CHAIN',
    innodb_lock_wait_timeout = CAST(LEAST(@@innodb_lock_wait_timeout, {lock_seconds}) AS UNSIGNED)
    /*M!100301 , max_statement_time = LEAST(COALESCE(NULLIF(@@max_statement_time, 0), {statement_seconds}), {statement_seconds}),
        idle_transaction_timeout = LEAST(COALESCE(NULLIF(@@idle_transaction_timeout, 0), {idle_seconds}), {idle_seconds}) */
    /*!50708 , max_execution_time = CAST(LEAST(COALESCE(NULLIF(@@max_execution_time, 0), {statement_millis}), {statement_millis}) AS UNSIGNED),
        wait_timeout = CAST(LEAST(@@wait_timeout, {idle_seconds}) AS UNSIGNED) */

-- name: isolation
-- No gap locks, so that batches and the application wait less for each other.
-- Nothing here relies on reading the same thing twice, and every check is a
-- locking read, which sees the newest row at any level.
SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED

-- name: galera
SHOW VARIABLES LIKE 'wsrep_on'

-- name: galera_ready
SHOW STATUS LIKE 'wsrep_ready'

-- name: galera_session
-- Each transaction begins, and each single statement runs, when this server has applied
-- what the others had committed by then.
SET SESSION wsrep_sync_wait = 1

-- name: fence_write
UPDATE {prefix}fence SET writes = writes + 1 WHERE job = ? AND epoch = ? AND owner = ?

-- name: begin
START TRANSACTION

-- name: fence_insert
-- Here and below the error of a duplicate tells that it is there.
INSERT INTO {prefix}fence (job, epoch, owner, node_id, lease_ms, lock_key, taken_at) VALUES (?, ?, ?, ?, ?, ?, {now})

-- name: position_insert
INSERT INTO {prefix}position (job, shard, position) VALUES (?, ?, ?)

-- name: ledger_insert
-- A plain INSERT: with INSERT IGNORE a value that is too long would be cut.
INSERT INTO {prefix}ledger (job, batch_id, part, `rows`, applied_at) VALUES (?, ?, ?, ?, {now})

-- name: newest_batch
INSERT INTO {prefix}position (job, shard, position) VALUES (?, ?, ?) ON DUPLICATE KEY UPDATE position = VALUES(position)

-- name: prune
-- See Prune for why the newest batch of a shard stays.
DELETE FROM {prefix}ledger
WHERE applied_at < {ago}
  AND NOT EXISTS (SELECT 1 FROM {prefix}position AS p WHERE p.job = {prefix}ledger.job AND p.position = {prefix}ledger.batch_id)
  AND NOT EXISTS (SELECT 1 FROM {prefix}fence AS f WHERE f.job = {prefix}ledger.job AND f.lock_key <> '' AND f.lock_key <> ?)
ORDER BY applied_at LIMIT 1000

-- name: dead_insert
INSERT INTO {prefix}dead_letter (id, job, batch_id, record, error, at) VALUES (?, ?, ?, ?, ?, {now})

-- name: dead_part_insert
INSERT INTO {prefix}dead_letter_part (id, part, record) VALUES (?, ?, ?)

-- name: migrate_lock
SELECT GET_LOCK(SHA2(CONCAT('baton migrate ', DATABASE(), ' {prefix}'), 256), {lock_seconds})

-- name: migrate_unlock
SELECT RELEASE_LOCK(SHA2(CONCAT('baton migrate ', DATABASE(), ' {prefix}'), 256))

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

-- name: table
SELECT t.table_schema, t.table_name, t.table_type, COALESCE(e.transactions, 'NO'), COALESCE(t.engine, ''),
       COALESCE(UNIX_TIMESTAMP(t.create_time), '')
FROM information_schema.tables t
LEFT JOIN information_schema.engines e ON e.engine = t.engine
WHERE t.table_schema = COALESCE(NULLIF(?, ''), DATABASE()) AND t.table_name = ?

-- name: table_id
-- TRUNCATE keeps the time of creation and takes another id. MySQL 8 has no table of this name.
SELECT table_id FROM information_schema.innodb_sys_tables WHERE name = CONCAT(?, '/', ?)

-- name: table_id_mysql
SELECT table_id FROM information_schema.innodb_tables WHERE name = CONCAT(?, '/', ?)

-- name: columns
SELECT column_name, data_type, column_type, is_nullable = 'YES',
       COALESCE(column_default, 'NULL') <> 'NULL' OR extra LIKE '%auto_increment%',
       COALESCE(generation_expression, '') <> '',
       CASE WHEN extra LIKE '%DEFAULT_GENERATED%' THEN NULL ELSE column_default END,
       COALESCE(character_maximum_length, 0), COALESCE(character_octet_length, 0),
       COALESCE(numeric_precision, 0), COALESCE(numeric_scale, 0), COALESCE(datetime_precision, 0),
       COALESCE(character_set_name, ''), COALESCE(collation_name, ''), VERSION() LIKE '%MariaDB%'
FROM information_schema.columns WHERE table_schema = ? AND table_name = ?
ORDER BY ordinal_position

-- name: unique
-- MariaDB adds the end of a row's version to each unique index of a table WITH SYSTEM VERSIONING. Of the rows of today it
-- is the same.
SELECT index_name, column_name, sub_part IS NOT NULL OR column_name IS NULL
FROM information_schema.statistics s
WHERE table_schema = ? AND table_name = ? AND non_unique = 0
  AND NOT EXISTS (SELECT 1 FROM information_schema.columns c WHERE c.table_schema = s.table_schema AND c.table_name = s.table_name
                  AND c.column_name = s.column_name AND c.generation_expression = 'ROW END')
ORDER BY index_name <> 'PRIMARY', index_name, seq_in_index

-- name: table_names
SELECT table_name FROM information_schema.tables
WHERE table_schema = COALESCE(NULLIF(?, ''), DATABASE()) AND table_type IN ('BASE TABLE', 'SYSTEM VERSIONED') LIMIT 1000

-- name: note_refused_row
-- Of MariaDB from 10.7 on: which row of a statement the error is about.
GET DIAGNOSTICS CONDITION 1 @baton_row = ROW_NUMBER

-- name: noted_row
-- The row that was noted so, or by a statement that counts its rows.
SELECT COALESCE(@baton_row, 0)
