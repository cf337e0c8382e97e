-- name: begin
BEGIN

-- name: commit
COMMIT

-- name: rollback
ROLLBACK

-- name: fence_take
UPDATE {prefix}fence SET epoch = $1, owner = $2, node_id = $3, taken_at = now() WHERE job = $4 AND epoch < $5

-- name: fence_insert
INSERT INTO {prefix}fence (job, epoch, owner, node_id) VALUES ($1, $2, $3, $4) ON CONFLICT (job) DO NOTHING

-- name: fence_read
SELECT epoch, owner FROM {prefix}fence WHERE job = $1

-- name: fence_check
SELECT epoch, owner FROM {prefix}fence WHERE job = $1 FOR SHARE

-- name: ledger_insert
INSERT INTO {prefix}ledger (job, batch_id, part, "rows") VALUES ($1, $2, $3, $4) ON CONFLICT (job, batch_id, part) DO NOTHING

-- name: dead_insert
INSERT INTO {prefix}dead_letter (id, job, batch_id, record, error) VALUES ($1, $2, $3, $4, $5) ON CONFLICT (id) DO NOTHING

-- name: migrate_lock
SELECT pg_advisory_lock(hashtextextended('baton migrate ' || coalesce(current_schema(), '') || ' {prefix}', 0))::text IS NOT NULL

-- name: migrate_unlock
SELECT pg_advisory_unlock(hashtextextended('baton migrate ' || coalesce(current_schema(), '') || ' {prefix}', 0))

-- name: table
SELECT c.oid::bigint, c.oid::regclass::text, c.relkind::text
FROM pg_class c WHERE c.oid = to_regclass($1)

-- name: columns
-- A domain is described by what it is made of: a cast to the domain itself would
-- cut a text that is too long, where assignment refuses it.
WITH RECURSIVE resolved AS (
    SELECT a.attnum, a.atttypid AS type, a.atttypmod AS typmod
    FROM pg_attribute a WHERE a.attrelid = $1::bigint::oid AND a.attnum > 0 AND NOT a.attisdropped
    UNION ALL
    SELECT r.attnum, t.typbasetype, CASE WHEN r.typmod = -1 THEN t.typtypmod ELSE r.typmod END
    FROM resolved r JOIN pg_type t ON t.oid = r.type WHERE t.typtype = 'd'
)
SELECT a.attname::text,
       CASE WHEN t.typnamespace = 'pg_catalog'::regnamespace THEN t.typname::text ELSE '' END,
       format_type(r.type, -1),
       r.typmod,
       NOT (a.attnotnull OR d.typnotnull),
       a.atthasdef OR a.attidentity <> '' OR d.typdefault IS NOT NULL,
       a.attgenerated <> '' OR a.attidentity = 'a'
FROM pg_attribute a
JOIN resolved r ON r.attnum = a.attnum
JOIN pg_type t ON t.oid = r.type AND t.typtype <> 'd'
JOIN pg_type d ON d.oid = a.atttypid
WHERE a.attrelid = $1::bigint::oid
ORDER BY a.attnum

-- name: unique
-- Only what ON CONFLICT can name: whole columns, no condition, checked at once.
SELECT ARRAY(SELECT a.attname::text
             FROM unnest(i.indkey[0:i.indnkeyatts - 1]) WITH ORDINALITY AS k(attnum, n)
             JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
             ORDER BY k.n)
FROM pg_index i
WHERE i.indrelid = $1::bigint::oid AND i.indisunique AND i.indisvalid AND i.indimmediate
  AND i.indpred IS NULL AND i.indexprs IS NULL
ORDER BY i.indisprimary DESC, i.indexrelid

-- name: table_names
SELECT c.oid::regclass::text FROM pg_class c
WHERE c.relkind IN ('r', 'p') AND pg_table_is_visible(c.oid) AND c.relnamespace <> 'pg_catalog'::regnamespace
LIMIT 1000
