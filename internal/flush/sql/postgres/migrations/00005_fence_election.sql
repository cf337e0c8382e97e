-- +goose Up
-- The election whose job this is; empty: a version before this one took it last.
ALTER TABLE {prefix}fence ADD COLUMN lock_key text NOT NULL DEFAULT '';
