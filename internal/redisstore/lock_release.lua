-- Gives the lock up if it is the owner's, and tells the standbys.
-- KEYS: lock, term, control, events
-- ARGV: owner, node id, event, reason, successor or "", ms to reserve the lock for it, wake channel
-- Reply: 1 if the lock was the owner's, 0 if it was not (nothing is changed then)
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return 0
end
local epoch = redis.call('HGET', KEYS[2], 'epoch')
redis.call('HDEL', KEYS[3], 'stepdown_owner', 'stepdown_to', 'stepdown_reason')
if ARGV[5] ~= '' then
  local time = redis.call('TIME')
  local until_ms = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000) + tonumber(ARGV[6])
  redis.call('HSET', KEYS[3], 'reserved_for', ARGV[5], 'reserved_until', string.format('%.0f', until_ms))
end
redis.call('HSET', KEYS[2], 'ended', '1')
redis.call('DEL', KEYS[1])
-- History and hint are courtesies: a user who may not write them still releases.
redis.pcall('XADD', KEYS[4], 'MAXLEN', '~', 1000, '*', 'event', ARGV[3], 'node_id', ARGV[2], 'epoch', epoch or '', 'reason', ARGV[4])
redis.pcall('PUBLISH', ARGV[7], 'released')
return 1
