-- Takes a part that is committed off the head of a staged list, if the stage still has that id, and only once.
-- KEYS: stage, meta
-- ARGV: id, part
-- Reply: "done", "stale" (the id is another one, or gone) or "early" (an earlier part is still there)
local meta = redis.call('HMGET', KEYS[2], 'id', 'rows', 'done')
if meta[1] ~= ARGV[1] then
  return 'stale'
end
local part, done = tonumber(ARGV[2]), tonumber(meta[3])
if part > done then
  return 'early'
end
if part == done then
  -- LTRIM comes first: it needs no memory, and after it a full memory refuses no other command of this script.
  redis.call('LTRIM', KEYS[1], meta[2], -1)
  redis.call('HSET', KEYS[2], 'done', done + 1)
end
return 'done'
