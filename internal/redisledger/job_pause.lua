-- Pauses a job, or all jobs of an election, or ends that pause.
-- KEYS: job hash, or control
-- ARGV: prefix of the fields, reason, or "" to end it, until when in ms, or "" without an end
-- Reply: the pause that was in force as {start in ms, reason, end or ""}, or {}
--
-- A second pause replaces reason and end.
local prefix = ARGV[1]
local now = clock()
local reason, ends = pausedBy(KEYS[1], prefix, now)
local before = reason and {redis.call('HGET', KEYS[1], prefix .. 'paused_at') or '0', reason, ends or ''} or {}
if ARGV[2] == '' then
  if reason then
    endPause(KEYS[1], prefix, before[1], string.format('%.0f', now))
  end
  return before
end
-- PERSIST writes first: then a full memory refuses no later command, and flushes can make room.
redis.call('PERSIST', KEYS[1])
redis.call('HSETNX', KEYS[1], prefix .. 'paused_at', string.format('%.0f', now))
redis.call('HSET', KEYS[1], prefix .. 'paused_reason', ARGV[2])
if ARGV[3] == '' then
  redis.call('HDEL', KEYS[1], prefix .. 'paused_until')
else
  redis.call('HSET', KEYS[1], prefix .. 'paused_until', ARGV[3])
end
return before
