-- +goose Up
-- The totals that counters have been flushed up to (mode: watermark).
CREATE TABLE IF NOT EXISTS {prefix}mark (
    job      varchar(255) NOT NULL,
    name     varchar(255) NOT NULL,
    total    varchar(255) NOT NULL,
    PRIMARY KEY (job, name)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
