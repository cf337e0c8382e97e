-- Keeps how the fields of a stage of counters are dealt out to its parts. The first answer counts.
-- KEYS: meta
-- ARGV: stage's id, the ends of the parts
-- Reply: {"dealt", ends} or {"stale"}: the stage is another one, or gone
local meta = redis.call('HMGET', KEYS[1], 'id', 'ends')
if meta[1] ~= ARGV[1] then
  return {'stale'}
end
if meta[2] then
  return {'dealt', meta[2]}
end
redis.call('PERSIST', KEYS[1]) -- is the first that writes: then a full memory refuses no later one
redis.call('HSET', KEYS[1], 'ends', ARGV[2])
return {'dealt', ARGV[2]}
