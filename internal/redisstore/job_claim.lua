-- Claims a slot of a job: only for the leader, and only a later slot than the last.
-- KEYS: lock, or fence; job hash
-- ARGV: owner, slot in ms, run id, epoch, then field, value... of the run
-- Reply: {"ok"}, {"not_leader", who leads instead or ""}, {"taken", last slot in ms}
--        or {"future", ms beyond Redis' clock}
--
-- A slot far in the future is that of a host whose clock is wrong. Once claimed, it
-- would be the last one until the others' clocks get there.
-- A claim asked again by the very run that holds it answers ok: its first reply was lost.
-- instead(owner, epoch) comes from claim_by_lock.lua or claim_by_epoch.lua: it returns who leads, or nothing.
local leader = instead(ARGV[1], ARGV[4])
if leader then
  return {'not_leader', leader}
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
for i = 5, #ARGV, 2 do
  redis.call('HSET', KEYS[2], 'running_' .. ARGV[i], ARGV[i + 1])
end
return {'ok'}
