/*
 * Writes to Redis, by node-redis or ioredis, what baton flushes: hashes and counters with an index of
 * those that have changed. Copy this file; it needs one of these packages and no more.
 *
 * Every change and its mark are one MULTI/EXEC, the mark last: Redis has both or neither, whatever
 * becomes of this process. An error of a connection may come after EXEC was carried out. Then a hash
 * may be saved again; a count may be in Redis, and counts twice if it is sent again. ioredis sends
 * again by itself: for counters make the client with {maxRetriesPerRequest: 0}. (Not with
 * autoResendUnfulfilledCommands: false, with which a call whose reply is lost never returns.)
 */

/** Sets fields of the hash key, and marks its id as changed. Other fields stay. */
export function save(redis, key, fields, index, id, options) {
  return change(redis, index, [id], (send) => send('HSET', key, ...Object.entries(fields).flat()), options);
}

/** Deletes the hash key, and marks its id as changed: the flush deletes the row. */
export function remove(redis, key, index, id, options) {
  return change(redis, index, [id], (send) => send('UNLINK', key), options);
}

/** Adds n to the counter key, which is that of id, and marks id as changed. */
export function count(redis, key, n, index, id, options) {
  return change(redis, index, [id], (send) => send('INCRBY', key, n), options);
}

/**
 * Adds n to a field of one of the hashes key:0 to key:<shards-1>, always the same one for a field.
 * These counters need no index: see [0-15] in baton's configuration.
 */
export async function countField(redis, key, shards, field, n) {
  const hash = `${key}:${shard(field, shards)}`;
  await (redis.hIncrBy ? redis.hIncrBy(hash, String(field), n) : redis.hincrby(hash, field, n));
}

/**
 * Sends what commands(send) sends, and marks the ids as changed, all in one MULTI and one round trip.
 * Redis serves nobody else meanwhile: some hundred rows at a time.
 * {scored: true}: the index is a ZSET, scored by the time of the change in milliseconds, not a SET.
 */
export async function change(redis, index, ids, commands, { scored = false } = {}) {
  if (ids.length === 0) {
    throw new RangeError('no ids to mark');
  }
  const tx = redis.multi();
  const send = (...args) => (tx.addCommand ? tx.addCommand(args.map(text)) : tx.call(...args.map(text)));
  commands(send);
  if (scored) {
    send('ZADD', index, ...ids.flatMap((id) => [Date.now(), id]));
  } else {
    send('SADD', index, ...ids);
  }
  const replies = await tx.exec().catch((e) => {
    throw e.replies?.[e.errorIndexes?.[0]] ?? e; // node-redis says only how many commands were refused
  });
  if (!replies) {
    throw new Error('the transaction was discarded: a key of your WATCH has changed');
  }
  // ioredis resolves with [error, reply] of each command; what Redis refuses inside EXEC is only there.
  for (const reply of replies) {
    const refused = Array.isArray(reply) ? reply[0] : reply;
    if (refused instanceof Error) {
      throw refused;
    }
  }
}

/** The CRC-16 of the text, as Redis Cluster has it, modulo shards. */
export function shard(text, shards) {
  let crc = 0;
  for (const byte of Buffer.from(String(text))) {
    crc ^= byte << 8;
    for (let i = 0; i < 8; i++) {
      crc = (crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1) & 0xffff;
    }
  }
  return crc % shards;
}

/** Refuses what String() would turn into the words null and undefined. */
function text(value) {
  if (value === null || value === undefined) {
    throw new TypeError(`cannot store ${value}: leave the field out, or send HDEL`);
  }
  return Buffer.isBuffer(value) ? value : String(value);
}
