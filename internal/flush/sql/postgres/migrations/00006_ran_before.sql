-- +goose Up
-- The jobs that ran before baton asked whose the rows of a table are: those own their rows.
INSERT INTO {prefix}position (job, shard, position) SELECT job, 'place in "ran before"', 'yes' FROM {prefix}fence WHERE true
ON CONFLICT (job, shard) DO NOTHING;
