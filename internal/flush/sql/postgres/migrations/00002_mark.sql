-- +goose Up
-- The totals that counters have been flushed up to (mode: watermark).
CREATE TABLE {prefix}mark (
    job      text NOT NULL,
    name     text NOT NULL,
    total    text NOT NULL,
    PRIMARY KEY (job, name)
);
