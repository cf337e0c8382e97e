-- +goose Up
-- put_back_at is when an operator last put the row back. The copy stays, because the job may overwrite the row later.
SET @statement = IF(
    EXISTS (SELECT 1 FROM information_schema.columns
            WHERE table_schema = DATABASE() AND table_name = '{prefix}deleted' AND column_name = 'put_back_at'),
    'DO 0', 'ALTER TABLE {prefix}deleted ADD COLUMN put_back_at datetime(6)');
PREPARE statement FROM @statement;
EXECUTE statement;
DEALLOCATE PREPARE statement;
