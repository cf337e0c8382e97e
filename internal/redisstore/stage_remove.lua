-- Removes members from a staged set or sorted set, if the stage still has that id.
-- KEYS: stage, meta
-- ARGV: id, member... (at most 1000: Redis serves nobody else meanwhile)
-- Reply: 1, or 0 when the id is another one, or gone
if redis.call('HGET', KEYS[2], 'id') ~= ARGV[1] then
  return 0
end
local found = redis.call('TYPE', KEYS[1]).ok
if found ~= 'none' then
  redis.call(found == 'zset' and 'ZREM' or 'SREM', KEYS[1], unpack(ARGV, 2))
end
return 1
