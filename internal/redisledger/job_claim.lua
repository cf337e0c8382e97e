-- Claims a run of a job: only for the leader, and unless the job is paused. A first attempt is granted if its slot is
-- later than the last one and than all that were missed, a further one if exactly that retrial is pending, a manual run if
-- its id was requested.
-- KEYS: lock, or fence; job hash; control; runs stream
-- ARGV: owner, slot in ms, run id, epoch, what it needs (slot, retry or request), the attempt, or for a manual run its
--       field of control (see job_request.lua), the run as it starts. For a run that had nothing to do and ends with its
--       claim: "", number of entries to keep, max_age in ms (see remember), then field, value... of the run; the first two
--       fields are its id and its state
-- Reply: {"ok"}, {"not_leader", the leader or ""}, {"taken", last slot in ms, or ""},
--        {"paused", reason}, {"future", ms beyond Redis' clock} or {"done"}: this run was claimed before, and has ended
--
-- A slot far in the future comes from a host whose clock is wrong. Once claimed, it
-- would block all earlier slots.
-- A repeated claim of the same run answers ok, or done: its first reply was lost.
-- A slot that a pause refuses is settled when its miss is recorded: until then it stays due.
-- instead(owner, epoch) comes from claim_by_lock.lua or claim_by_epoch.lua: it returns another leader, or nil.
local slot, run, needs, which = ARGV[2], ARGV[3], ARGV[5], ARGV[6]
local leader = instead(ARGV[1], ARGV[4])
if leader then
  return {'not_leader', leader}
end
-- PERSIST writes first: then a full memory refuses no later command, and flushes can make room.
redis.call('PERSIST', KEYS[2])
local known = redis.call('HMGET', KEYS[2], 'run:' .. run, 'last_slot', 'missed_slot', 'retry', 'begun', 'idle',
  'paused_reason', 'paused_until', 'paused_at')
local open, last, missed, retry, begun, idle = unpack(known, 1, 6)
if open then
  return {'ok'}
end
local folded = named(idle and cjson.decode(idle) or {})
if folded.id == run or folded.last == run then
  return {'done'}
end
local now = clock()
local all = redis.call('HMGET', KEYS[3], 'jobs_paused_reason', 'jobs_paused_until', 'jobs_paused_at')
local paused = pauseOf(KEYS[2], '', now, unpack(known, 7, 9)) or pauseOf(KEYS[3], 'jobs_', now, unpack(all, 1, 3))
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
  local pending = string.match(retry or '', '^(%S+ %S+)') == slot .. ' ' .. which
  if pending then
    redis.call('HDEL', KEYS[2], 'retry')
  end
  if paused then
    return {'paused', paused}
  end
  if not pending then
    return {'taken', last or ''}
  end
else
  if missed and tonumber(missed) > (tonumber(last) or 0) then
    last = missed -- who asks has given up meanwhile, and told so
  end
  local later = not last or tonumber(last) < tonumber(slot)
  local ahead = tonumber(slot) - now
  if later and ahead > 60000 then
    return {'future', string.format('%.0f', ahead)}
  end
  if later and retry then
    redis.call('HDEL', KEYS[2], 'retry')
  end
  if paused then
    return {'paused', paused}
  end
  if not later then
    return {'taken', last}
  end
end
local set = {'latest', run}
if needs == 'slot' then
  push(set, 'last_slot', slot)
end
if needs ~= 'request' and not begun then
  push(set, 'begun', slot)
end
if ARGV[7] == '' then
  local record, first, count = {unpack(ARGV, 10)}, slot, 0
  if joins(folded, named(record), last) then
    record[2], first, count = folded.id, folded.first, tonumber(folded.count)
  else
    unfold(KEYS[2], KEYS[4], ARGV[8], ARGV[9], now, idle)
  end
  result(set, record)
  push(record, 'first', first, 'count', string.format('%.0f', count + 1), 'last', run, 'at', string.format('%.0f', now))
  push(set, 'idle', cjson.encode(record))
else
  push(set, 'run:' .. run, ARGV[7])
end
redis.call('HSET', KEYS[2], unpack(set))
return {'ok'}
