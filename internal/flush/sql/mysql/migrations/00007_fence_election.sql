-- +goose Up
-- lock_key names the election to which the job belongs. It is empty if an older version has taken the fence last.
SET @statement = IF(
    EXISTS (SELECT 1 FROM information_schema.columns
            WHERE table_schema = DATABASE() AND table_name = '{prefix}fence' AND column_name = 'lock_key'),
    'DO 0', 'ALTER TABLE {prefix}fence ADD COLUMN lock_key varchar(255) NOT NULL DEFAULT ''''');
PREPARE statement FROM @statement;
EXECUTE statement;
DEALLOCATE PREPARE statement;
