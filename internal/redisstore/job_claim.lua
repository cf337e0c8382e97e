-- Claims a slot of a job: only for the lock's owner, and only a later slot than the last.
-- KEYS: lock, job hash
-- ARGV: owner, slot in ms, run id, then field, value... of the run
-- Reply: {"ok"}, {"not_leader", owner found or ""}, {"taken", last slot in ms}
--        or {"future", ms beyond Redis' clock}
--
-- A slot far in the future is that of a host whose clock is wrong. Once claimed, it
-- would be the last one until the others' clocks get there.
-- A claim asked again by the very run that holds it answers ok: its first reply was lost.
local found = redis.call('GET', KEYS[1])
if found ~= ARGV[1] then
  return {'not_leader', found or ''}
end
local job = redis.call('HMGET', KEYS[2], 'last_slot', 'running_id')
if job[1] and tonumber(job[1]) >= tonumber(ARGV[2]) then
  if job[1] == ARGV[2] and job[2] == ARGV[3] then
    return {'ok'}
  end
  return {'taken', job[1]}
end
local time = redis.call('TIME')
local ahead = tonumber(ARGV[2]) - (tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000))
if ahead > 60000 then
  return {'future', string.format('%.0f', ahead)}
end
redis.call('HSET', KEYS[2], 'last_slot', ARGV[2])
for i = 4, #ARGV, 2 do
  redis.call('HSET', KEYS[2], 'running_' .. ARGV[i], ARGV[i + 1])
end
return {'ok'}
