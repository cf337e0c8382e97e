-- +goose Up
CREATE TABLE {prefix}fence (
    job      text PRIMARY KEY,
    epoch    bigint NOT NULL,
    owner    text NOT NULL,
    node_id  text NOT NULL,
    taken_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE {prefix}ledger (
    job        text NOT NULL,
    batch_id   text NOT NULL,
    part       integer NOT NULL,
    "rows"     bigint NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (job, batch_id, part)
);

CREATE INDEX {prefix}ledger_applied_at ON {prefix}ledger (applied_at);

CREATE TABLE {prefix}position (
    job      text NOT NULL,
    shard    text NOT NULL,
    position text NOT NULL,
    PRIMARY KEY (job, shard)
);

-- The record is text and not jsonb, because jsonb refuses \u0000, and every dead letter
-- must be storable.
CREATE TABLE {prefix}dead_letter (
    id       text PRIMARY KEY,
    job      text NOT NULL,
    batch_id text NOT NULL,
    record   text NOT NULL,
    error    text NOT NULL,
    at       timestamptz NOT NULL DEFAULT now()
);

CREATE INDEX {prefix}dead_letter_job_at ON {prefix}dead_letter (job, at);
