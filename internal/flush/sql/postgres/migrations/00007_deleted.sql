-- +goose Up
-- This table keeps the rows that jobs with keep_deleted have deleted or overwritten, until their time is over.
CREATE TABLE {prefix}deleted (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    lock_key   text NOT NULL,
    job        text NOT NULL,
    table_name text NOT NULL,
    row_key    text NOT NULL,
    old_row    text NOT NULL,
    why        text NOT NULL,
    epoch      bigint NOT NULL,
    at         timestamptz NOT NULL,
    keep_until timestamptz NOT NULL
);

CREATE INDEX {prefix}deleted_keep_until ON {prefix}deleted (keep_until);

CREATE INDEX {prefix}deleted_job ON {prefix}deleted (lock_key, job, id);
