-- Asks the leader to run a job now.
-- KEYS: job hash, control
-- ARGV: field of control, run id, ms until the request expires, "force" or "-", who requests it
-- Reply: {"ok"}, {"paused", reason} or {"asked", who requested it before}
--
-- A run id that waits, runs or ran last was requested before, and the reply was lost: ok, and nothing changes.
-- The field holds "ID ENDS FORCE WHO": job_claim.lua removes it, but not after ENDS, by Redis' clock in ms.
-- job_queue.lua sets FORCE to "queued".
local known = redis.call('HMGET', KEYS[1], 'run:' .. ARGV[2], 'latest')
if known[1] or known[2] == ARGV[2] then
  return {'ok'}
end
local now = clock()
local paused = pausedBy(KEYS[1], '', now) or pausedBy(KEYS[2], 'jobs_', now)
if paused then
  return {'paused', paused}
end
local id, ends, who = string.match(redis.call('HGET', KEYS[2], ARGV[1]) or '', '^(%S+) (%d+) %S+ (.*)$')
if id and tonumber(ends) >= now then
  return id == ARGV[2] and {'ok'} or {'asked', who}
end
-- PERSIST writes first: then a full memory refuses no later command, and flushes can make room.
redis.call('PERSIST', KEYS[2])
redis.call('HSET', KEYS[2], ARGV[1], string.format('%s %.0f %s %s', ARGV[2], now + tonumber(ARGV[3]), ARGV[4], ARGV[5]))
return {'ok'}
