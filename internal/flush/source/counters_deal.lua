-- Records how the fields of a stage of counters are assigned to parts. Only the first call records its argument.
-- KEYS: meta
-- ARGV: stage's id, the ends of the parts
-- Reply: {"dealt", the recorded ends} or {"stale"}: the stage has another id or no id
local meta = redis.call('HMGET', KEYS[1], 'id', 'ends')
if meta[1] ~= ARGV[1] then
  return {'stale'}
end
if meta[2] then
  return {'dealt', meta[2]}
end
redis.call('PERSIST', KEYS[1]) -- the first command that writes, so that a full memory refuses no later command
redis.call('HSET', KEYS[1], 'ends', ARGV[2])
return {'dealt', ARGV[2]}
