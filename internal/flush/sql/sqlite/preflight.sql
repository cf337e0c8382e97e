-- name: pragmas
SELECT j.journal_mode, s.synchronous FROM pragma_journal_mode AS j, pragma_synchronous AS s

-- name: schema
-- This returns the triggers of a table.
SELECT name FROM {schema}.sqlite_schema
WHERE tbl_name = ? COLLATE NOCASE AND type = 'trigger'

-- name: indexes
SELECT l.name, COALESCE(x.name, '(an expression)') || CASE WHEN l.partial THEN ' of some rows' ELSE '' END
FROM pragma_index_list(?1, ?2) AS l, pragma_index_xinfo(l.name, ?2) AS x
WHERE l."unique" AND x.key
ORDER BY l.origin <> 'pk', l.seq, x.seqno

-- name: try
-- A transaction can begin even in a file that cannot be written, so this statement tries a write.
CREATE TABLE {prefix}preflight (id INTEGER)
