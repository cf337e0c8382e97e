-- +goose Up
-- There is no IF NOT EXISTS. If two processes migrate at the same time, the slower process
-- must fail here, roll back and check the tables again.
CREATE TABLE {prefix}fence (
    job      text NOT NULL PRIMARY KEY,
    epoch    integer NOT NULL,
    owner    text NOT NULL,
    node_id  text NOT NULL,
    taken_at text NOT NULL
) WITHOUT ROWID;

CREATE TABLE {prefix}ledger (
    job        text NOT NULL,
    batch_id   text NOT NULL,
    part       integer NOT NULL,
    "rows"     integer NOT NULL,
    applied_at text NOT NULL,
    PRIMARY KEY (job, batch_id, part)
) WITHOUT ROWID;

CREATE INDEX {prefix}ledger_applied_at ON {prefix}ledger (applied_at);

CREATE TABLE {prefix}position (
    job      text NOT NULL,
    shard    text NOT NULL,
    position text NOT NULL,
    PRIMARY KEY (job, shard)
) WITHOUT ROWID;

CREATE TABLE {prefix}dead_letter (
    id       text NOT NULL PRIMARY KEY,
    job      text NOT NULL,
    batch_id text NOT NULL,
    record   text NOT NULL,
    error    text NOT NULL,
    at       text NOT NULL
);

CREATE INDEX {prefix}dead_letter_job_at ON {prefix}dead_letter (job, at);
