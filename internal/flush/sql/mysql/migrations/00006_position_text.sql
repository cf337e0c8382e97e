-- +goose Up
-- The position in a Cluster contains a place for every master, so it may be long.
ALTER TABLE {prefix}position MODIFY COLUMN position text NOT NULL;
