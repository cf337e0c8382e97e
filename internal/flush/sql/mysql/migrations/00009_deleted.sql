-- +goose Up
-- This table keeps the rows that jobs with keep_deleted have deleted or overwritten, until their time is over.
CREATE TABLE IF NOT EXISTS {prefix}deleted (
    id         bigint NOT NULL AUTO_INCREMENT PRIMARY KEY,
    lock_key   varchar(255) NOT NULL,
    job        varchar(255) NOT NULL,
    table_name varchar(255) NOT NULL,
    row_key    longtext NOT NULL,
    old_row    longtext NOT NULL,
    why        varchar(32) NOT NULL,
    epoch      bigint NOT NULL,
    at         datetime(6) NOT NULL,
    keep_until datetime(6) NOT NULL,
    KEY {prefix}deleted_keep_until (keep_until),
    KEY {prefix}deleted_job (lock_key, job, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
