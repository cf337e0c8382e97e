-- Takes a part that is committed off the head of a staged list, if the stage still has that id, and only once.
-- KEYS: stage, meta
-- ARGV: id, part, its items
-- Reply: "done", "stale" (the id is another one, or gone) or "early" (an earlier part is still there)
local meta = redis.call('HMGET', KEYS[2], 'id', 'done', 'rows', 'taken')
if meta[1] ~= ARGV[1] then
  return 'stale'
end
local part, done = tonumber(ARGV[2]), tonumber(meta[2])
if part > done then
  return 'early'
end
if part == done then
  -- LTRIM comes first: it needs no memory, and after it a full memory refuses no other command of this script.
  redis.call('LTRIM', KEYS[1], ARGV[3], -1)
  -- One command counts the part and its items: were the second of two refused, what is left would look like a broken stage.
  if meta[3] == '0' then
    redis.call('HSET', KEYS[2], 'done', done + 1, 'taken', tonumber(meta[4]) + tonumber(ARGV[3]))
  else -- a stage of a version that does not count the items
    redis.call('HSET', KEYS[2], 'done', done + 1)
  end
end
return 'done'
