-- Removes members from a staged set or sorted set, if the stage still has that id.
-- KEYS: stage, meta
-- ARGV: id, member... (at most 400, because Redis serves no other client while the script runs)
-- Reply: 1, or 0 if the stage has another id or no id
--
-- When only a tenth of the members is left, Redis shrinks the hash table of a set. For
-- millions of members this blocks all clients for tens of milliseconds. So the last
-- quarter of a large stage is not removed here, but counted as passed. Discard removes
-- it as a whole, in the background. If the run ends before Discard, the last quarter is
-- flushed again.
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
  redis.call('PERSIST', KEYS[2]) -- the first command that writes, so that a full memory does not refuse the next command
  redis.call('HINCRBY', KEYS[2], 'passed', #ARGV - 1)
else
  redis.call(zset and 'ZREM' or 'SREM', KEYS[1], unpack(ARGV, 2))
end
return 1
