-- +goose Up
-- Each batch increments writes on a server of a cluster, because a lock does not reach the other servers.
SET @statement = IF(
    EXISTS (SELECT 1 FROM information_schema.columns
            WHERE table_schema = DATABASE() AND table_name = '{prefix}fence' AND column_name = 'writes'),
    'DO 0', 'ALTER TABLE {prefix}fence ADD COLUMN writes bigint NOT NULL DEFAULT 0');
PREPARE statement FROM @statement;
EXECUTE statement;
DEALLOCATE PREPARE statement;
