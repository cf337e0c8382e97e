-- +goose Up
-- The lease of the term: whoever finds a Redis that has lost its data waits for as long.
-- MySQL has no ADD COLUMN IF NOT EXISTS, and commits this before its version is written.
SET @statement = IF(
    EXISTS (SELECT 1 FROM information_schema.columns
            WHERE table_schema = DATABASE() AND table_name = '{prefix}fence' AND column_name = 'lease_ms'),
    'DO 0', 'ALTER TABLE {prefix}fence ADD COLUMN lease_ms bigint NOT NULL DEFAULT 0');
PREPARE statement FROM @statement;
EXECUTE statement;
DEALLOCATE PREPARE statement;
