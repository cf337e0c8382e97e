<?php
/*
 * Writes to Redis, by phpredis (the extension redis) or Predis, what baton flushes: hashes and
 * counters with an index of those that have changed. Copy this file; it needs one of these and no more.
 *
 * Every change and its mark are one MULTI/EXEC, the mark last: Redis has both or neither, whatever
 * becomes of this process. An exception of a connection may come after EXEC was carried out. Then a
 * hash may be saved again; a count may be in Redis, and counts twice if it is sent again. Neither
 * client sends anything twice. Keys are sent as they are given: a client's prefix is not put before them.
 */

namespace changed;

/** Sets fields of the hash key, and marks its id as changed. Other fields stay. */
function save(object $redis, string $key, array $fields, string $index, string $id, bool $scored = false): void
{
    $args = [];
    foreach ($fields as $field => $value) {
        if ($value === null) {
            throw new \InvalidArgumentException("field $field is null: leave it out, or send HDEL");
        }
        array_push($args, (string) $field, (string) $value);
    }
    change($redis, $index, [$id], fn (callable $send) => $send('HSET', $key, ...$args), $scored);
}

/** Deletes the hash key, and marks its id as changed: the flush deletes the row. */
function remove(object $redis, string $key, string $index, string $id, bool $scored = false): void
{
    change($redis, $index, [$id], fn (callable $send) => $send('UNLINK', $key), $scored);
}

/** Adds n to the counter key, which is that of id, and marks id as changed. */
function count(object $redis, string $key, int $n, string $index, string $id, bool $scored = false): void
{
    change($redis, $index, [$id], fn (callable $send) => $send('INCRBY', $key, (string) $n), $scored);
}

/**
 * Adds n to a field of one of the hashes key:0 to key:<shards-1>, always the same one for a field.
 * These counters need no index: see [0-15] in baton's configuration.
 */
function countField(object $redis, string $key, int $shards, string $field, int $n): void
{
    if ($redis->hincrby($key . ':' . shard($field, $shards), $field, $n) === false) {
        throw new \RuntimeException((string) $redis->getLastError()); // phpredis does not throw
    }
}

/**
 * Sends what $commands($send) sends, and marks the ids as changed, all in one MULTI. Redis serves
 * nobody else meanwhile: some hundred rows at a time. $scored: the index is a ZSET, scored by the time
 * of the change in milliseconds, and not a SET.
 */
function change(object $redis, string $index, array $ids, callable $commands, bool $scored = false): void
{
    if ($ids === []) {
        throw new \InvalidArgumentException('no ids to mark');
    }
    $mark = [$scored ? 'ZADD' : 'SADD', $index];
    foreach ($ids as $id) {
        if ($scored) {
            $mark[] = (string) (int) (microtime(true) * 1000);
        }
        $mark[] = (string) $id;
    }
    $all = [];
    $commands(function (string ...$command) use (&$all): void {
        $all[] = $command;
    });
    $all[] = $mark;

    if ($redis instanceof \Predis\ClientInterface) {
        $replies = $redis->transaction(function (object $tx) use ($all): void {
            foreach ($all as $command) {
                $tx->executeCommand(\Predis\Command\RawCommand::create(...$command));
            }
        });
        foreach ($replies as $reply) { // with the option exceptions it has thrown already
            if ($reply instanceof \Predis\Response\ErrorInterface) {
                throw new \RuntimeException($reply->getMessage());
            }
        }
        return;
    }
    $redis->clearLastError();
    $tx = $redis->multi();
    foreach ($all as $command) {
        $tx->rawCommand(...$command);
    }
    $replies = $tx->exec();
    // phpredis throws nothing where Redis refuses a command: a mark may be missing.
    if ($replies === false || $redis->getLastError() !== null) {
        throw new \RuntimeException($redis->getLastError() ?? 'the transaction was discarded');
    }
}

/** The CRC-16 of the text, as Redis Cluster has it, modulo shards. */
function shard(string $text, int $shards): int
{
    $crc = 0;
    foreach (str_split($text) as $byte) {
        $crc ^= ord($byte) << 8;
        for ($i = 0; $i < 8; $i++) {
            $crc = ($crc & 0x8000 ? $crc << 1 ^ 0x1021 : $crc << 1) & 0xFFFF;
        }
    }
    return $crc % $shards;
}
