-- +goose Up
-- lease_ms is the lease of the term. A node that finds a Redis without its data waits for this time.
ALTER TABLE {prefix}fence ADD COLUMN lease_ms integer NOT NULL DEFAULT 0;
