-- +goose Up
-- This table has the parts of a record that is longer than the longest statement. The letter itself has only the beginnings of
-- the texts of the record.
CREATE TABLE IF NOT EXISTS {prefix}dead_letter_part (
    id     char(32) NOT NULL,
    part   int NOT NULL,
    record longtext NOT NULL,
    PRIMARY KEY (id, part)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
