-- Releases the lock if it is the owner's, and wakes the standbys.
-- KEYS: lock, term, control, events
-- ARGV: owner, node id, event, reason, its code or "", successor or "", ms to reserve the lock for it, wake channel
-- Reply: 1 if the lock was the owner's, 0 if it was not (nothing is changed then)
if holder() ~= ARGV[1] then
  return 0
end
local epoch = integer(epochOf(redis.call('HGET', KEYS[2], 'epoch')) or 0)
redis.call('HDEL', KEYS[3], 'stepdown_owner', 'stepdown_to', 'stepdown_reason', 'stepdown_code')
if ARGV[6] ~= '' then
  redis.call('HSET', KEYS[3], 'reserved_for', ARGV[6], 'reserved_until', integer(clock() + tonumber(ARGV[7])))
end
redis.call('HSET', KEYS[2], 'ended', '1', 'held_until', integer(clock()))
drop()
addEvent(KEYS[4], ARGV[3], ARGV[2], epoch, ARGV[4], ARGV[5])
if ARGV[3] ~= 'withdrawn' then -- rivals that wake each other would go on splitting the masters of a quorum among themselves
  redis.pcall('PUBLISH', ARGV[8], 'released')
end
return 1
