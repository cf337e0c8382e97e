-- Trims a committed part from the head of a staged list, if the stage still has that id. A second call for the same part
-- changes nothing.
-- KEYS: stage, meta
-- ARGV: id, part, number of items of the part
-- Reply: "done", "stale" (the stage has another id or no id) or "early" (an earlier part is still in the stage)
local meta = redis.call('HMGET', KEYS[2], 'id', 'done', 'rows', 'taken')
if meta[1] ~= ARGV[1] then
  return 'stale'
end
local part, done = tonumber(ARGV[2]), tonumber(meta[2])
if part > done then
  return 'early'
end
if part == done then
  -- LTRIM is the first command that writes, because it needs no memory. After it a full memory refuses no other command of
  -- this script.
  redis.call('LTRIM', KEYS[1], ARGV[3], -1)
  -- One command counts the part and its items. If there were two commands and Redis refused the second one, the stage would
  -- look broken.
  if meta[3] == '0' then
    redis.call('HSET', KEYS[2], 'done', done + 1, 'taken', tonumber(meta[4]) + tonumber(ARGV[3]))
  else -- the stage was made by a version that does not count the items
    redis.call('HSET', KEYS[2], 'done', done + 1)
  end
end
return 'done'
