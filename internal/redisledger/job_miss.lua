-- Records slots of a job that are not run, for the leader only: no later term catches up on them.
-- KEYS: lock, or fence; job hash; runs stream
-- ARGV: owner, epoch, entries to keep, their maximum age in ms (see remember), reason, number of slots, the first and
--       the last of them in ms, the slot before the first or "", then further field, value... of the entry
-- Reply: {"ok"}, {"not_leader", the leader or ""}, {"future", ms beyond Redis' clock} or {"taken"}
--
-- A repeated call finds the slots in an entry. Slots that follow those of the newest entry, if it has the same
-- reason, are added to it. The reason unknown, with no slots, is recorded only if the job has no state. Otherwise no
-- slots means that the job has none up to there. A slot that could not be claimed is not missed if it was claimed
-- after all: its run is open, or in the history.
-- instead(owner, epoch) comes from claim_by_lock.lua or claim_by_epoch.lua: it returns another leader, or nil.
local reason, count, first, slot, after = ARGV[5], tonumber(ARGV[6]), ARGV[7], ARGV[8], ARGV[9]
local leader = instead(ARGV[1], ARGV[2])
if leader then
  return {'not_leader', leader}
end
local now = clock()
local ahead = tonumber(slot) - now
if ahead > 60000 then -- the host's clock is wrong (see job_claim.lua): they are still to come
  return {'future', string.format('%.0f', ahead)}
end
local known = redis.call('HMGET', KEYS[2], 'last_slot', 'missed_until', 'missed_slot', 'idle')
if reason == 'unknown' and count == 0 and (known[1] or known[2]) then
  return {'ok'}
end
local unclaimed = reason == 'ledger' and count == 1
if unclaimed and known[1] == slot then
  return {'taken'}
end
-- PERSIST writes first: then a full memory refuses no later command, and flushes can make room.
redis.call('PERSIST', KEYS[2])
if not known[2] or tonumber(known[2]) < tonumber(slot) then
  redis.call('HSET', KEYS[2], 'missed_until', slot)
end
if not known[1] and not known[2] then -- of a job that has never run this is all that says since when it is due
  redis.call('HSETNX', KEYS[2], 'known', count == 0 and slot or string.format('%.0f', tonumber(first) - 1))
end
if count > 0 then
  local missed = known[3]
  if not missed or tonumber(missed) < tonumber(slot) then
    redis.call('HSET', KEYS[2], 'missed_slot', slot)
  end
end
if count == 0 and reason ~= 'unknown' then
  return {'ok'}
end
unfold(KEYS[2], KEYS[3], ARGV[3], ARGV[4], now, known[4])
for i, entry in ipairs(redis.call('XREVRANGE', KEYS[3], '+', '-', 'COUNT', 20)) do
  local have = {}
  for f = 1, #entry[2], 2 do
    have[entry[2][f]] = entry[2][f + 1]
  end
  if unclaimed and have.slot == slot and have.state ~= 'missed' and have.trigger ~= 'manual' then
    return {'taken'}
  end
  if have.state == 'missed' and have.reason == reason and have.count ~= '0' then
    if tonumber(have.first) <= tonumber(first) and tonumber(have.slot) >= tonumber(slot) then
      return {'ok'}
    end
    if i == 1 and have.slot == after then
      redis.call('XDEL', KEYS[3], entry[1])
      first, count = have.first, count + tonumber(have.count)
    end
  end
end
remember(KEYS[3], ARGV[3], ARGV[4], now, 'id', '', 'state', 'missed', 'slot', slot, 'reason', reason,
  'count', string.format('%.0f', count), 'first', first, unpack(ARGV, 10))
return {'ok'}
