-- Extends the lease if it is still the owner's, and brings back what operators ask of the leader.
-- KEYS: lock, nodes, control
-- ARGV: owner, ttl in ms, node id, presence (a JSON object)
-- Reply: {"renewed", "1" if asked to step down, successor or "", reason or ""} or {"lost", owner found or ""}
local holder = redis.call('GET', KEYS[1])
if holder ~= ARGV[1] then
  return {'lost', holder or ''}
end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
local time = redis.call('TIME')
local now = string.format('%.0f', tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000))
redis.call('HSET', KEYS[2], ARGV[3], string.sub(ARGV[4], 1, -2) .. ',"state":"leading","seen_ms":' .. now .. '}')
local order = redis.call('HMGET', KEYS[3], 'stepdown_owner', 'stepdown_to', 'stepdown_reason')
return {'renewed', order[1] == ARGV[1] and '1' or '0', order[2] or '', order[3] or ''}
