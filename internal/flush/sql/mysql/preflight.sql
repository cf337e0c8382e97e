-- name: settings
-- SHOW returns only the variables that the server has.
SHOW VARIABLES WHERE Variable_name IN (
    'innodb_flush_log_at_trx_commit', 'log_bin', 'sync_binlog', 'binlog_format', 'innodb_doublewrite',
    'read_only', 'super_read_only', 'innodb_read_only', 'transaction_read_only', 'tx_read_only',
    'innodb_lock_wait_timeout', 'autocommit', 'version',
    'wsrep_on', 'group_replication_single_primary_mode', 'group_replication_group_name')

-- name: clock
SELECT CAST(UNIX_TIMESTAMP(NOW(6)) * 1000000 AS SIGNED)

-- name: own_tables
SELECT table_name FROM information_schema.tables
WHERE table_schema = DATABASE() AND table_name IN (
    '{prefix}fence', '{prefix}ledger', '{prefix}position', '{prefix}mark', '{prefix}dead_letter', '{prefix}dead_letter_part', '{prefix}deleted',
    '{prefix}schema_version')

-- name: own_rights
-- Each line is one statement. The statements are only prepared, which checks the rights, and never executed.
SELECT epoch FROM {prefix}fence WHERE job = '' LOCK IN SHARE MODE;
UPDATE {prefix}fence SET epoch = 1 WHERE job = '';
INSERT INTO {prefix}fence (job, epoch, owner, node_id, taken_at) VALUES ('', 1, '', '', NULL);
SELECT part FROM {prefix}ledger WHERE job = '';
INSERT INTO {prefix}ledger (job, batch_id, part) VALUES ('', '', 0);
DELETE FROM {prefix}ledger WHERE job = '';
SELECT position FROM {prefix}position WHERE job = '';
INSERT INTO {prefix}position (job, shard, position) VALUES ('', '', '');
UPDATE {prefix}position SET position = '' WHERE job = '';
SELECT total FROM {prefix}mark WHERE job = '';
INSERT INTO {prefix}mark (job, name, total) VALUES ('', '', '');
UPDATE {prefix}mark SET total = '' WHERE job = '';
SELECT record FROM {prefix}dead_letter WHERE job = '';
INSERT INTO {prefix}dead_letter (id, job) VALUES ('', '');
DELETE FROM {prefix}dead_letter WHERE job = '';
SELECT record FROM {prefix}dead_letter_part WHERE id = '';
INSERT INTO {prefix}dead_letter_part (id, part) VALUES ('', 0);
DELETE FROM {prefix}dead_letter_part WHERE id = '';
SELECT old_row FROM {prefix}deleted WHERE id = 0;
INSERT INTO {prefix}deleted (lock_key, job) VALUES ('', '');
DELETE FROM {prefix}deleted WHERE id = 0;
SELECT version_id FROM {prefix}schema_version

-- name: own_create
-- This statement is also only prepared.
CREATE TABLE {prefix}preflight (id int) ENGINE=InnoDB

-- name: triggers
-- Without the privilege TRIGGER the result is empty.
SELECT trigger_name FROM information_schema.triggers
WHERE event_object_schema = COALESCE(NULLIF(?, ''), DATABASE()) AND event_object_table = ? ORDER BY 1

-- name: narrow
-- This returns the text columns that cannot hold every character, with their character sets. For NULL the column is no text.
SELECT column_name, character_set_name FROM information_schema.columns
WHERE table_schema = COALESCE(NULLIF(?, ''), DATABASE()) AND table_name = ?
  AND character_set_name NOT IN ('utf8mb4', 'utf16', 'utf16le', 'utf32', 'gb18030')
ORDER BY ordinal_position

-- name: indexes
-- A part of a column is shown as "name(10)". An expression has no column, and is shown as "(an expression)".
SELECT index_name,
       CASE WHEN column_name IS NULL THEN '(an expression)' WHEN sub_part IS NULL THEN column_name ELSE CONCAT(column_name, '(', sub_part, ')') END
FROM information_schema.statistics s
WHERE table_schema = COALESCE(NULLIF(?, ''), DATABASE()) AND table_name = ? AND non_unique = 0
  AND NOT EXISTS (SELECT 1 FROM information_schema.columns c WHERE c.table_schema = s.table_schema AND c.table_name = s.table_name
                  AND c.column_name = s.column_name AND c.generation_expression = 'ROW END')
ORDER BY index_name <> 'PRIMARY', index_name, seq_in_index
