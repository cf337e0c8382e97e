-- Removes members from a staged set or sorted set, if the stage still has that id.
-- KEYS: stage, meta
-- ARGV: id, member... (at most 400: Redis serves nobody else meanwhile)
-- Reply: 1, or 0 when the id is another one, or gone
--
-- Where a tenth of its members is left, Redis makes a set's hash table smaller, and of
-- millions that holds everybody up for tens of milliseconds. So the last quarter of a
-- large stage stays, and is counted as passed: Discard removes it as a whole, in the
-- background. If the run ends before, it is flushed once more.
local meta = redis.call('HMGET', KEYS[2], 'id', 'size')
if meta[1] ~= ARGV[1] then
  return 0
end
local found = redis.call('TYPE', KEYS[1]).ok
if found == 'none' then
  return 1
end
local zset = found == 'zset'
local left = redis.call(zset and 'ZCARD' or 'SCARD', KEYS[1])
if meta[2] and left - #ARGV < tonumber(meta[2]) / 4 then
  redis.call('PERSIST', KEYS[2]) -- the first that writes: then a full memory does not refuse the next
  redis.call('HINCRBY', KEYS[2], 'passed', #ARGV - 1)
else
  redis.call(zset and 'ZREM' or 'SREM', KEYS[1], unpack(ARGV, 2))
end
return 1
