-- +goose Up
-- This table has the flushed totals of counters (mode: watermark). Two names that differ only in a
-- blank at the end are different counters, so the collation must not pad.
CREATE TABLE IF NOT EXISTS {prefix}mark (
    job      varchar(255) NOT NULL,
    name     varchar(255) NOT NULL,
    total    varchar(255) NOT NULL,
    PRIMARY KEY (job, name)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 /*M! COLLATE=utf8mb4_nopad_bin */ /*!80017 COLLATE=utf8mb4_0900_bin */;
