-- +goose Up
-- This records the jobs that ran before baton asked for acceptances. These jobs own the rows of their tables.
INSERT INTO {prefix}position (job, shard, position) SELECT job, 'place in "ran before"', 'yes' FROM {prefix}fence WHERE true
ON CONFLICT (job, shard) DO NOTHING;
