-- +goose Up
-- IF NOT EXISTS is needed because MySQL commits each of these statements by itself, so a
-- migration that was interrupted starts again with some of the tables.
CREATE TABLE IF NOT EXISTS {prefix}fence (
    job      varchar(255) NOT NULL PRIMARY KEY,
    epoch    bigint NOT NULL,
    owner    varchar(64) NOT NULL,
    node_id  varchar(255) NOT NULL,
    taken_at datetime(6) NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS {prefix}ledger (
    job        varchar(255) NOT NULL,
    batch_id   varchar(64) NOT NULL,
    part       int NOT NULL,
    `rows`     bigint NOT NULL,
    applied_at datetime(6) NOT NULL,
    PRIMARY KEY (job, batch_id, part),
    KEY {prefix}ledger_applied_at (applied_at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS {prefix}position (
    job      varchar(255) NOT NULL,
    shard    varchar(255) NOT NULL,
    position varchar(255) NOT NULL,
    PRIMARY KEY (job, shard)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS {prefix}dead_letter (
    id       char(32) NOT NULL PRIMARY KEY,
    job      varchar(255) NOT NULL,
    batch_id varchar(64) NOT NULL,
    record   longtext NOT NULL,
    error    text NOT NULL,
    at       datetime(6) NOT NULL,
    KEY {prefix}dead_letter_job_at (job, at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
