-- Ends the gathering of a stage: from now on it has so many parts, whatever a part's size is later.
-- KEYS: staged index, stage, meta
-- ARGV: stage's id, records a part, what is large: the parts of less are cut by order
-- Reply: {"sealed", parts, size}, {"more"}: ids are left, {"empty"}: nothing was counted, and the
--        stage is gone, or {"stale"}: the stage is another one, or gone
local meta = redis.call('HMGET', KEYS[3], 'id', 'parts')
if meta[1] ~= ARGV[1] then
  return {'stale'}
end
local size = redis.call('HLEN', KEYS[2])
if meta[2] then
  return {'sealed', tonumber(string.match(meta[2], '^%d+')), size}
end
if redis.call('EXISTS', KEYS[1]) == 1 then
  return {'more'}
end
if size == 0 then
  redis.call('UNLINK', KEYS[3])
  return {'empty'}
end
local parts = math.ceil(size / tonumber(ARGV[2]))
redis.call('PERSIST', KEYS[2])
local ordered = parts > 1 and size <= tonumber(ARGV[3])
redis.call('HSET', KEYS[3], 'parts', ordered and parts .. ' by order of ' .. size or parts)
return {'sealed', parts, size}
