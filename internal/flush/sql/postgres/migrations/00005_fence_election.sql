-- +goose Up
-- lock_key names the election to which the job belongs. It is empty if an older version has taken the fence last.
ALTER TABLE {prefix}fence ADD COLUMN lock_key text NOT NULL DEFAULT '';
