-- name: settings
-- These are the settings of our own session, so they show whether a pooler has dropped a setting.
SELECT name, setting FROM pg_settings WHERE name IN (
    'fsync', 'full_page_writes', 'synchronous_commit', 'data_checksums', 'synchronous_standby_names',
    'transaction_read_only', 'lock_timeout', 'statement_timeout', 'idle_in_transaction_session_timeout',
    'server_version', 'server_version_num', 'server_encoding')
UNION ALL SELECT 'recovery', pg_is_in_recovery()::text
UNION ALL SELECT 'standbys', (SELECT count(*) FROM pg_stat_replication)::text
UNION ALL SELECT 'schema', COALESCE(current_schema(), '')
UNION ALL SELECT 'may_create', COALESCE(has_schema_privilege(current_schema(), 'CREATE'), false)::text

-- name: clock
SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint

-- name: own_tables
SELECT t.name, c.oid IS NOT NULL, COALESCE(c.relpersistence::text, ''),
       COALESCE(row_security_active(c.oid), false),
       ARRAY(SELECT p FROM unnest(t.needs) AS p WHERE NOT has_table_privilege(c.oid, p))
FROM (VALUES ('{prefix}fence', ARRAY['SELECT', 'INSERT', 'UPDATE']),
             ('{prefix}ledger', ARRAY['SELECT', 'INSERT', 'DELETE']),
             ('{prefix}position', ARRAY['SELECT', 'INSERT', 'UPDATE']),
             ('{prefix}mark', ARRAY['SELECT', 'INSERT', 'UPDATE']),
             ('{prefix}dead_letter', ARRAY['SELECT', 'INSERT', 'DELETE']),
             ('{prefix}dead_letter_part', ARRAY['SELECT', 'INSERT', 'DELETE']),
             ('{prefix}deleted', ARRAY['SELECT', 'INSERT', 'DELETE']),
             ('{prefix}schema_version', ARRAY['SELECT'])) AS t(name, needs)
LEFT JOIN pg_class c ON c.oid = to_regclass(t.name)

-- name: target
SELECT c.relpersistence::text, c.relhasrules, row_security_active(c.oid),
       ARRAY(SELECT tgname::text FROM pg_trigger t WHERE t.tgrelid = c.oid AND NOT t.tgisinternal AND t.tgenabled <> 'D' ORDER BY 1)
FROM pg_class c WHERE c.oid = to_regclass($1)

-- name: grants
-- This returns the missing rights, each with its column. A right to the whole table counts for each column.
SELECT n.privilege, n.columnname
FROM unnest($2::text[], $3::text[]) AS n(privilege, columnname)
WHERE CASE WHEN n.columnname = '' THEN NOT has_table_privilege(to_regclass($1), n.privilege)
           ELSE NOT has_column_privilege(to_regclass($1), n.columnname, n.privilege) END

-- name: sequences
-- These are the sequences in the defaults of columns that the job does not write. The sequence of an identity needs no
-- permission.
SELECT DISTINCT s.oid::regclass::text
FROM pg_attrdef d
JOIN pg_attribute a ON a.attrelid = d.adrelid AND a.attnum = d.adnum AND a.attname <> ALL ($2::text[])
JOIN pg_depend k ON k.classid = 'pg_attrdef'::regclass AND k.objid = d.oid AND k.refclassid = 'pg_class'::regclass
JOIN pg_class s ON s.oid = k.refobjid
WHERE d.adrelid = to_regclass($1)
  AND CASE WHEN s.relkind = 'S' THEN NOT has_sequence_privilege(s.oid, 'USAGE') AND NOT has_sequence_privilege(s.oid, 'UPDATE') END
ORDER BY 1

-- name: unique
-- This returns every unique index, also the indexes that ON CONFLICT cannot name.
SELECT c.relname::text, i.indpred IS NOT NULL,
       ARRAY(SELECT pg_get_indexdef(i.indexrelid, n, true) FROM generate_series(1, i.indnkeyatts) AS n),
       COALESCE(ARRAY(SELECT a.attname::text FROM unnest(i.indkey[0:i.indnkeyatts - 1]) AS k(attnum)
                      JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum), '{}')
FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
WHERE i.indrelid = to_regclass($1) AND i.indisunique AND i.indislive
ORDER BY 1
