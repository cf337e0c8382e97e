-- Asks the leader to run a job now.
-- KEYS: job hash, control
-- ARGV: field of control, run id, for how many ms the request is good, who asks
-- Reply: {"ok"}, {"paused", why} or {"asked", by whom already}
--
-- The field holds "ID ENDS WHO": job_claim.lua takes it away, and nobody does after ENDS, by Redis' clock in ms.
local paused = redis.call('HGET', KEYS[1], 'paused_reason')
if paused then
  return {'paused', paused}
end
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local id, ends, who = string.match(redis.call('HGET', KEYS[2], ARGV[1]) or '', '^(%S+) (%d+) (.*)$')
if id and id ~= ARGV[2] and tonumber(ends) >= now then
  return {'asked', who}
end
-- PERSIST is the first that writes: then a full memory refuses no later command, and flushes can make room.
redis.call('PERSIST', KEYS[2])
redis.call('HSET', KEYS[2], ARGV[1], string.format('%s %.0f %s', ARGV[2], now + tonumber(ARGV[3]), ARGV[4]))
return {'ok'}
