-- +goose Up
-- This table has the parts of a record that is longer than the longest statement. The letter itself has only the beginnings of
-- the texts of the record.
CREATE TABLE {prefix}dead_letter_part (
    id     text NOT NULL,
    part   integer NOT NULL,
    record text NOT NULL,
    PRIMARY KEY (id, part)
);
