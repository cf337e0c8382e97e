-- +goose Up
-- lease_ms is the lease of the term. A node that finds a Redis without its data waits for this time.
-- MySQL has no ADD COLUMN IF NOT EXISTS, and commits this change before the version of the migration is written.
SET @statement = IF(
    EXISTS (SELECT 1 FROM information_schema.columns
            WHERE table_schema = DATABASE() AND table_name = '{prefix}fence' AND column_name = 'lease_ms'),
    'DO 0', 'ALTER TABLE {prefix}fence ADD COLUMN lease_ms bigint NOT NULL DEFAULT 0');
PREPARE statement FROM @statement;
EXECUTE statement;
DEALLOCATE PREPARE statement;
