-- +goose Up
-- This table has the flushed totals of counters (mode: watermark).
CREATE TABLE {prefix}mark (
    job      text NOT NULL,
    name     text NOT NULL,
    total    text NOT NULL,
    PRIMARY KEY (job, name)
) WITHOUT ROWID;
