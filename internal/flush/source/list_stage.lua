-- Freezes what is pending in a live list under an id, or finds what an earlier run froze.
-- KEYS: live, stage, meta
-- ARGV: new id, records a part, job, bytes a part
-- Reply: {"staged", id, parts, items left, job}, {"nothing"}, {"wrong_type", key, type},
--        {"orphan"}: a stage without an id, or
--        {"changed", id, items that should be left, items found}: somebody else has touched the stage
--
-- How a stage is cut is decided once, here: it must be the same at every reading. A part has as many items as both limits
-- allow. Parts that are committed are taken off its head, and counted in "done", their items in "taken"; a stage of which
-- all are taken is over, whatever the run that did them still meant to do.
--
-- "rows" is how many items each part has in a stage of a version that knew no limit of bytes. Such a version must not read
-- a stage of this one, and fails where rows are 0.
local meta = redis.call('HMGET', KEYS[3], 'id', 'parts', 'job', 'size', 'rows', 'done', 'taken')
local staged = redis.call('TYPE', KEYS[2]).ok
if staged ~= 'none' and staged ~= 'list' then
  return {'wrong_type', KEYS[2], staged}
end
local left = redis.call('LLEN', KEYS[2])
if meta[1] and meta[5] then -- an id without rows is of hashes that were flushed before there was a list
  local rows = tonumber(meta[5])
  local should = math.max(0, tonumber(meta[4]) - (rows > 0 and rows * tonumber(meta[6]) or tonumber(meta[7])))
  if left ~= should then
    return {'changed', meta[1], should, left}
  end
  if left > 0 then
    return {'staged', meta[1], tonumber(meta[2]), left, meta[3]}
  end
elseif left > 0 then
  return {'orphan'}
end

local live = redis.call('TYPE', KEYS[1]).ok
if live ~= 'none' and live ~= 'list' then
  return {'wrong_type', KEYS[1], live}
end
if live == 'none' then
  redis.call('UNLINK', KEYS[3])
  return {'nothing'}
end
-- The order matters if Redis refuses one of these (its user lacks a permission): whatever is refused, nothing is half
-- staged. PERSIST is the first that writes: then a full memory refuses no later one.
local size, rows = redis.call('LLEN', KEYS[1]), tonumber(ARGV[2])
local parts = math.ceil(size / rows) -- or more, where items are long
redis.call('PERSIST', KEYS[1])
redis.call('HSET', KEYS[3], 'id', ARGV[1], 'parts', parts, 'job', ARGV[3], 'size', size,
  'part_rows', rows, 'part_bytes', ARGV[4], 'rows', 0, 'done', 0, 'taken', 0)
local renamed = redis.pcall('RENAME', KEYS[1], KEYS[2])
if renamed.err then
  redis.call('UNLINK', KEYS[3])
  return renamed
end
return {'staged', ARGV[1], parts, size, ARGV[3]}
