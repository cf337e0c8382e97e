-- name: session
-- STRICT_ALL_TABLES makes a value that does not fit an error, so that the server never cuts a value. With
-- NO_AUTO_VALUE_ON_ZERO a 0 stays 0. autocommit and completion_type have their usual values, whatever the server's defaults
-- are. The time limits end the transaction of a leader that froze. MariaDB reads its limits in the first comment, and MySQL
-- reads its limits in the second comment. A limit of the server or the user stays if it is less than ours. Whether
-- transactions may write is not set here, because only the server decides that. CAST is needed because MySQL accepts no
-- decimal number as a limit, and LEAST of an unsigned and a signed number is a decimal number.
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
-- At this level there are no gap locks, so batches and the application wait less for each other.
-- No statement of baton needs repeatable reads, and every check is a locking read, which sees the
-- newest row at any level.
SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED

-- name: galera
SHOW VARIABLES LIKE 'wsrep_on'

-- name: galera_ready
SHOW STATUS LIKE 'wsrep_ready'

-- name: galera_session
-- Each transaction and each single statement begins only after this server has applied all
-- transactions that the other servers have committed before.
SET SESSION wsrep_sync_wait = 1

-- name: fence_write
UPDATE {prefix}fence SET writes = writes + 1 WHERE job = ? AND epoch = ? AND owner = ?

-- name: begin
START TRANSACTION

-- name: fence_insert
-- In this insert and the inserts below, the error about a duplicate key means that the row exists.
INSERT INTO {prefix}fence (job, epoch, owner, node_id, lease_ms, lock_key, taken_at) VALUES (?, ?, ?, ?, ?, ?, {now})

-- name: position_insert
INSERT INTO {prefix}position (job, shard, position) VALUES (?, ?, ?)

-- name: ledger_insert
-- This is a plain INSERT, because INSERT IGNORE would cut a value that is too long.
INSERT INTO {prefix}ledger (job, batch_id, part, `rows`, applied_at) VALUES (?, ?, ?, ?, {now})

-- name: newest_batch
INSERT INTO {prefix}position (job, shard, position) VALUES (?, ?, ?) ON DUPLICATE KEY UPDATE position = VALUES(position)

-- name: prune
-- The comment of Prune gives the reason why the newest batch of a shard stays.
DELETE FROM {prefix}ledger
WHERE applied_at < {ago}
  AND NOT EXISTS (SELECT 1 FROM {prefix}position AS p WHERE p.job = {prefix}ledger.job AND p.position = {prefix}ledger.batch_id)
  AND NOT EXISTS (SELECT 1 FROM {prefix}fence AS f WHERE f.job = {prefix}ledger.job AND f.lock_key <> '' AND f.lock_key <> ?)
ORDER BY applied_at LIMIT ?

-- name: kept_prune
DELETE FROM {prefix}deleted WHERE keep_until < {now} ORDER BY keep_until LIMIT ?

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
-- TRUNCATE gives the table a new id, but keeps its time of creation. MySQL 8 has no innodb_sys_tables.
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
-- In a table WITH SYSTEM VERSIONING, MariaDB adds the column with the end of a row's version to each unique index. All present
-- rows have the same value in this column, so the query skips the column.
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
-- MariaDB 10.7 and later report the number of the row that the error is about.
GET DIAGNOSTICS CONDITION 1 @baton_row = ROW_NUMBER

-- name: noted_row
-- This returns the row that note_refused_row, or a statement that counts its rows, has recorded.
SELECT COALESCE(@baton_row, 0)

-- name: kept_restore
-- A kept row may contain dates that the mode of our sessions refuses, such as 0000-00-00. MariaDB reads the mode of this statement in the
-- first comment, and MySQL 8 reads it in the second comment.
/*M!100301 SET STATEMENT sql_mode = 'STRICT_ALL_TABLES,NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES' FOR */
INSERT /*+ SET_VAR(sql_mode = 'STRICT_ALL_TABLES,NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES') */ INTO %[1]s (%[2]s) VALUES (%[3]s)
