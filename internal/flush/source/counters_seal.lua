-- Ends the gathering of a stage. It records the number of parts, which then stays the same, even if the size of a part in the
-- configuration changes. It also gives the stage the id under which the ledger will know it.
-- KEYS: staged index, stage, meta
-- ARGV: stage's id, records of a part, records of a large stage; a stage that is not larger is cut by order; new id
-- Reply: {"sealed", id, parts, size}, {"more"}: the staged index still has ids, {"empty"}: no count was gathered, and the
--        stage was removed, or {"stale"}: the stage has another id or no id
--
-- The new id matters if a failover loses the sealing of a stage that was applied. Then the stage is gathering again, and gets
-- later increments. Under its old id the ledger would skip these increments.
local meta = redis.call('HMGET', KEYS[3], 'id', 'parts')
local size = redis.call('HLEN', KEYS[2])
-- An older version keeps the id. The new id is there if this request was sent again after it was executed.
if meta[2] and (meta[1] == ARGV[1] or meta[1] == ARGV[4]) then
  return {'sealed', meta[1], tonumber(string.match(meta[2], '^%d+')), size}
end
if meta[1] ~= ARGV[1] then
  return {'stale'}
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
redis.call('HSET', KEYS[3], 'id', ARGV[4], 'parts', ordered and parts .. ' by order of ' .. size or parts)
return {'sealed', ARGV[4], parts, size}
