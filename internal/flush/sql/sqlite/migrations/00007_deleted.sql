-- +goose Up
-- This table keeps the rows that jobs with keep_deleted have deleted or overwritten, until their time is over.
CREATE TABLE {prefix}deleted (
    id         integer PRIMARY KEY AUTOINCREMENT,
    lock_key   text NOT NULL,
    job        text NOT NULL,
    table_name text NOT NULL,
    row_key    text NOT NULL,
    old_row    text NOT NULL,
    why        text NOT NULL,
    epoch      integer NOT NULL,
    at         text NOT NULL,
    keep_until text NOT NULL
);

CREATE INDEX {prefix}deleted_keep_until ON {prefix}deleted (keep_until);

CREATE INDEX {prefix}deleted_job ON {prefix}deleted (lock_key, job, id);
