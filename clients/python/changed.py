"""Writes to Redis, by redis-py, what baton flushes: hashes and counters with an index of those
that have changed. Copy this file; it needs the package redis and no more.

Every change and its mark are one MULTI/EXEC, the mark last: Redis has both or neither, whatever
becomes of this process. A ConnectionError or TimeoutError may come after EXEC was carried out. Then
a hash may be saved again; a count may be in Redis, and counts twice if it is sent again. From
version 6 on redis-py sends again by itself: for counters make the client with
retry=Retry(NoBackoff(), 0).
"""

import binascii
import time


def save(redis, key, fields, index, id, scored=False):
    """Sets fields of the hash key, and marks its id as changed. Other fields stay."""
    change(redis, index, [id], lambda tx: tx.hset(key, mapping=fields), scored)


def remove(redis, key, index, id, scored=False):
    """Deletes the hash key, and marks its id as changed: the flush deletes the row."""
    change(redis, index, [id], lambda tx: tx.unlink(key), scored)


def count(redis, key, n, index, id, scored=False):
    """Adds n to the counter key, which is that of id, and marks id as changed."""
    change(redis, index, [id], lambda tx: tx.incrby(key, n), scored)


def count_field(redis, key, shards, field, n):
    """Adds n to a field of one of the hashes key:0 to key:<shards-1>, always the same one for a
    field. These counters need no index: see [0-15] in baton's configuration."""
    redis.hincrby(f"{key}:{shard(field, shards)}", field, n)


def change(redis, index, ids, commands, scored=False):
    """Sends what commands(tx) adds, and marks the ids as changed, all in one MULTI and one round
    trip. Redis serves nobody else meanwhile: some hundred rows at a time. scored: the index is a
    ZSET, scored by the time of the change in milliseconds, and not a SET."""
    ids = list(ids)
    if not ids:
        raise ValueError("no ids to mark")
    with redis.pipeline(transaction=True) as tx:
        commands(tx)
        if scored:
            now = int(time.time() * 1000)
            tx.zadd(index, {id: now for id in ids})
        else:
            tx.sadd(index, *ids)
        tx.execute()  # raises what Redis refuses, also inside EXEC


def shard(text, shards):
    """The CRC-16 of the text, as Redis Cluster has it, modulo shards."""
    return binascii.crc_hqx(str(text).encode(), 0) % shards
