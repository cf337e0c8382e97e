-- Pauses a job, or all jobs of an election, or ends that pause.
-- KEYS: job hash, or control
-- ARGV: what stands before the names of the fields, why, or "" to end it, until when in ms, or "" without an end
-- Reply: {since when it was paused before in ms, why, until when or ""}, or {} if it was not
--
-- Paused again it goes on under the new reason, and until the new end.
local prefix = ARGV[1]
local now = clock()
local reason, ends = pausedBy(KEYS[1], prefix, now)
local before = reason and {redis.call('HGET', KEYS[1], prefix .. 'paused_at') or '0', reason, ends or ''} or {}
if ARGV[2] == '' then
  redis.call('HDEL', KEYS[1], prefix .. 'paused_at', prefix .. 'paused_reason', prefix .. 'paused_until')
  return before
end
-- PERSIST is the first that writes: then a full memory refuses no later command, and flushes can make room.
redis.call('PERSIST', KEYS[1])
redis.call('HSETNX', KEYS[1], prefix .. 'paused_at', string.format('%.0f', now))
redis.call('HSET', KEYS[1], prefix .. 'paused_reason', ARGV[2])
if ARGV[3] == '' then
  redis.call('HDEL', KEYS[1], prefix .. 'paused_until')
else
  redis.call('HSET', KEYS[1], prefix .. 'paused_until', ARGV[3])
end
return before
