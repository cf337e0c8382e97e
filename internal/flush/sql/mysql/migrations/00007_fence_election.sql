-- +goose Up
-- The election whose job this is; empty: a version before this one took it last.
SET @statement = IF(
    EXISTS (SELECT 1 FROM information_schema.columns
            WHERE table_schema = DATABASE() AND table_name = '{prefix}fence' AND column_name = 'lock_key'),
    'DO 0', 'ALTER TABLE {prefix}fence ADD COLUMN lock_key varchar(255) NOT NULL DEFAULT ''''');
PREPARE statement FROM @statement;
EXECUTE statement;
DEALLOCATE PREPARE statement;
