-- +goose Up
-- put_back_at is when an operator last put the row back. The copy stays, because the job may overwrite the row later.
ALTER TABLE {prefix}deleted ADD COLUMN put_back_at text;
