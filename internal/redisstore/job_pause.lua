-- Pauses a job, or ends its pause.
-- KEYS: job hash
-- ARGV: why, or "" to end it
-- Reply: {since when it was paused before in ms, why}, or {} if it was not
--
-- Paused again it goes on under the new reason.
local before = redis.call('HMGET', KEYS[1], 'paused_at', 'paused_reason')
if ARGV[1] == '' then
  redis.call('HDEL', KEYS[1], 'paused_at', 'paused_reason')
else
  local time = redis.call('TIME')
  redis.call('HSETNX', KEYS[1], 'paused_at', time[1] .. string.sub(string.format('%06d', time[2]), 1, 3))
  redis.call('HSET', KEYS[1], 'paused_reason', ARGV[1])
end
return before[2] and before or {}
