-- Claims a run of a job: only for the leader, and unless the job is paused. A first attempt is granted if its slot is
-- later than the last one and than all that were missed, a further one if exactly that retrial is pending, a manual run if
-- its id was requested.
-- KEYS: lock, or fence; job hash; control
-- ARGV: owner, slot in ms, run id, epoch, what it needs (slot, retry or request), the attempt, or for a manual run its
--       field of control (see job_request.lua), the run as it starts
-- Reply: {"ok"}, {"not_leader", the leader or ""}, {"taken", last slot in ms, or ""},
--        {"paused", reason} or {"future", ms beyond Redis' clock}
--
-- A slot far in the future comes from a host whose clock is wrong. Once claimed, it
-- would block all earlier slots.
-- A repeated claim of the same run answers ok: its first reply was lost.
-- A slot that a pause refuses is settled when its miss is recorded: until then it stays due.
-- instead(owner, epoch) comes from claim_by_lock.lua or claim_by_epoch.lua: it returns another leader, or nil.
local slot, run, needs, which = ARGV[2], ARGV[3], ARGV[5], ARGV[6]
local leader = instead(ARGV[1], ARGV[4])
if leader then
  return {'not_leader', leader}
end
-- PERSIST writes first: then a full memory refuses no later command, and flushes can make room.
redis.call('PERSIST', KEYS[2])
if redis.call('HGET', KEYS[2], 'run:' .. run) then
  return {'ok'}
end
local now = clock()
local paused = pausedBy(KEYS[2], '', now) or pausedBy(KEYS[3], 'jobs_', now)
if needs == 'request' then
  local id, ends = string.match(redis.call('HGET', KEYS[3], which) or '', '^(%S+) (%d+)')
  if id ~= run or tonumber(ends) < now then
    return {'taken', ''}
  end
  if paused then
    return {'paused', paused}
  end
  redis.call('HDEL', KEYS[3], which)
elseif needs == 'retry' then
  local pending = string.match(redis.call('HGET', KEYS[2], 'retry') or '', '^(%S+ %S+)') == slot .. ' ' .. which
  if pending then
    redis.call('HDEL', KEYS[2], 'retry')
  end
  if paused then
    return {'paused', paused}
  end
  if not pending then
    return {'taken', redis.call('HGET', KEYS[2], 'last_slot') or ''}
  end
else
  local last, missed = unpack(redis.call('HMGET', KEYS[2], 'last_slot', 'missed_slot'))
  if missed and tonumber(missed) > (tonumber(last) or 0) then
    last = missed -- who asks has given up meanwhile, and told so
  end
  local later = not last or tonumber(last) < tonumber(slot)
  local ahead = tonumber(slot) - now
  if later and ahead > 60000 then
    return {'future', string.format('%.0f', ahead)}
  end
  if later then
    redis.call('HDEL', KEYS[2], 'retry')
  end
  if paused then
    return {'paused', paused}
  end
  if not later then
    return {'taken', last}
  end
  redis.call('HSET', KEYS[2], 'last_slot', slot)
end
redis.call('HSET', KEYS[2], 'run:' .. run, ARGV[7], 'latest', run)
if needs ~= 'request' and not redis.call('HGET', KEYS[2], 'begun') then
  redis.call('HSET', KEYS[2], 'begun', slot)
end
return {'ok'}
