-- +goose Up
-- A record that is longer than the longest statement. The letter itself has its beginnings.
CREATE TABLE {prefix}dead_letter_part (
    id     text NOT NULL,
    part   integer NOT NULL,
    record text NOT NULL,
    PRIMARY KEY (id, part)
);
