-- +goose Up
-- IF NOT EXISTS: SQLite has no lock to hold over a whole migration, so two
-- processes may both run this one, one after the other.
CREATE TABLE IF NOT EXISTS {prefix}fence (
    job      text NOT NULL PRIMARY KEY,
    epoch    integer NOT NULL,
    owner    text NOT NULL,
    node_id  text NOT NULL,
    taken_at text NOT NULL
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS {prefix}ledger (
    job        text NOT NULL,
    batch_id   text NOT NULL,
    part       integer NOT NULL,
    "rows"     integer NOT NULL,
    applied_at text NOT NULL,
    PRIMARY KEY (job, batch_id, part)
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS {prefix}position (
    job      text NOT NULL,
    shard    text NOT NULL,
    position text NOT NULL,
    PRIMARY KEY (job, shard)
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS {prefix}dead_letter (
    id       text NOT NULL PRIMARY KEY,
    job      text NOT NULL,
    batch_id text NOT NULL,
    record   text NOT NULL,
    error    text NOT NULL,
    at       text NOT NULL
);

CREATE INDEX IF NOT EXISTS {prefix}dead_letter_job_at ON {prefix}dead_letter (job, at);
