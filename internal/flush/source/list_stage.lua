-- Freezes the pending items of a live list under an id, or finds the stage of an earlier run.
-- KEYS: live, stage, meta
-- ARGV: new id, maximum items of a part, job, maximum bytes of a part
-- Reply: {"staged", id, parts, items left, job}, {"nothing"}, {"wrong_type", key, type},
--        {"orphan"}: a stage without an id, or
--        {"changed", id, items that should be left, items found}: another program has changed the stage
--
-- This script decides once how a stage is cut, because every reading must give the same parts. A part has as many items as
-- both limits allow. Committed parts are trimmed from the head of the stage. "done" counts these parts, and "taken" counts
-- their items. If all items are taken, the stage is finished, even if its run has not discarded the stage.
--
-- "rows" is the number of items of each part, in a stage of a version without a limit of bytes. Such a version must not read
-- a stage of this version. It fails because "rows" is 0.
local meta = redis.call('HMGET', KEYS[3], 'id', 'parts', 'job', 'size', 'rows', 'done', 'taken')
local staged = redis.call('TYPE', KEYS[2]).ok
if staged ~= 'none' and staged ~= 'list' then
  return {'wrong_type', KEYS[2], staged}
end
local left = redis.call('LLEN', KEYS[2])
if meta[1] and meta[5] then -- an id without "rows" was left by hashes that had this key before the list
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
-- The order matters if Redis refuses one of these commands because its user lacks a permission: whichever command is
-- refused, no stage is made in part. PERSIST is the first command that writes. It needs no memory, and after it a full memory
-- refuses no other command.
local size, rows = redis.call('LLEN', KEYS[1]), tonumber(ARGV[2])
local parts = math.ceil(size / rows) -- or more parts, if items are long
redis.call('PERSIST', KEYS[1])
redis.call('HSET', KEYS[3], 'id', ARGV[1], 'parts', parts, 'job', ARGV[3], 'size', size,
  'part_rows', rows, 'part_bytes', ARGV[4], 'rows', 0, 'done', 0, 'taken', 0)
local renamed = redis.pcall('RENAME', KEYS[1], KEYS[2])
if renamed.err then
  redis.call('UNLINK', KEYS[3])
  return renamed
end
return {'staged', ARGV[1], parts, size, ARGV[3]}
