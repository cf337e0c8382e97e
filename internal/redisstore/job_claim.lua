-- Claims a run of a job: only for the leader, and unless the job is paused. A slot is claimed if it is later than the
-- last one, a manual run if its id was asked for.
-- KEYS: lock, or fence; job hash; control
-- ARGV: owner, slot in ms, run id, epoch, "" or what a manual run was asked for in, a field of control (see
--       job_request.lua), then field, value... of the run
-- Reply: {"ok"}, {"not_leader", who leads instead or ""}, {"taken", last slot in ms, or "" for a manual run},
--        {"paused", why} or {"future", ms beyond Redis' clock}
--
-- A slot far in the future is that of a host whose clock is wrong. Once claimed, it
-- would be the last one until the others' clocks get there.
-- A claim asked again by the very run that holds it answers ok: its first reply was lost.
-- A slot that a pause refuses is dealt with all the same: nobody shall catch up on it.
-- instead(owner, epoch) comes from claim_by_lock.lua or claim_by_epoch.lua: it returns who leads, or nothing.
local slot, run, request = ARGV[2], ARGV[3], ARGV[5]
local leader = instead(ARGV[1], ARGV[4])
if leader then
  return {'not_leader', leader}
end
-- PERSIST is the first that writes: then a full memory refuses no later command, and flushes can make room.
redis.call('PERSIST', KEYS[2])
local job = redis.call('HMGET', KEYS[2], 'last_slot', 'running_id', 'paused_reason')
local last, running, paused = job[1], job[2], job[3]
if running == run and (request ~= '' or last == slot) then
  return {'ok'}
end
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
if request ~= '' then
  local id, ends = string.match(redis.call('HGET', KEYS[3], request) or '', '^(%S+) (%d+)')
  if id ~= run or tonumber(ends) < now then
    return {'taken', ''}
  end
  if paused then
    return {'paused', paused}
  end
  redis.call('HDEL', KEYS[3], request)
else
  local later = not last or tonumber(last) < tonumber(slot)
  local ahead = tonumber(slot) - now
  if later and ahead > 60000 then
    return {'future', string.format('%.0f', ahead)}
  end
  if later then
    redis.call('HSET', KEYS[2], 'last_slot', slot)
  end
  if paused then
    return {'paused', paused}
  end
  if not later then
    return {'taken', last}
  end
end
redis.call('HDEL', KEYS[2], 'running_rows', 'running_dead', 'running_batches', 'running_backlog')
for i = 6, #ARGV, 2 do
  redis.call('HSET', KEYS[2], 'running_' .. ARGV[i], ARGV[i + 1])
end
return {'ok'}
