-- +goose Up
-- The lease of the term: whoever finds a Redis that has lost its data waits for as long.
ALTER TABLE {prefix}fence ADD COLUMN lease_ms bigint NOT NULL DEFAULT 0;
