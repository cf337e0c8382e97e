-- +goose Up
-- A place in every master of a Cluster is one position.
ALTER TABLE {prefix}position MODIFY COLUMN position text NOT NULL;
