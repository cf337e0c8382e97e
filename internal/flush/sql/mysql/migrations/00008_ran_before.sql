-- +goose Up
-- This records the jobs that ran before baton asked for acceptances. These jobs own the rows of their tables.
INSERT IGNORE INTO {prefix}position (job, shard, position) SELECT job, 'place in "ran before"', 'yes' FROM {prefix}fence;
