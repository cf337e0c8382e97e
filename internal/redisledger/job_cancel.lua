-- Asks the leader to cancel runs of a job.
-- KEYS: control
-- ARGV: field of control, id of the order, ms until it expires, the run's id, or "*" for all, who orders it
-- Reply: {"ok"}, or {"asked", who ordered it before}
--
-- The field holds "ID ENDS RUN WHO": job_cancelled.lua removes it.
local now = clock()
local id, ends, who = string.match(redis.call('HGET', KEYS[1], ARGV[1]) or '', '^(%S+) (%d+) %S+ (.*)$')
if id and id ~= ARGV[2] and tonumber(ends) >= now then
  return {'asked', who}
end
-- PERSIST writes first: then a full memory refuses no later command, and flushes can make room.
redis.call('PERSIST', KEYS[1])
redis.call('HSET', KEYS[1], ARGV[1], string.format('%s %.0f %s %s', ARGV[2], now + tonumber(ARGV[3]), ARGV[4], ARGV[5]))
return {'ok'}
