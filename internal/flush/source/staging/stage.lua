-- Freezes the pending changes of a live key under an id, or finds the stage of an earlier run.
-- KEYS: live, stage, meta
-- ARGV: new id, records of a part, wanted type, another wanted type or "", job, records of a large stage
-- Reply: {"staged", id, parts, size, job}, {"nothing"}, {"wrong_type", key, type},
--        {"orphan"}: a stage without an id, or {"lost", id}: an id without its stage
--
-- The number of records of a part is 0 for a source that is idempotent and removes its records
-- one by one. When all records of its stage are removed, Redis removes the stage, and the id
-- stays. If its stage has lost the id, the stage is read again under a new id. For any other
-- source both cases mean that another program has written to the keys.
-- The job in the reply is the name of the job that made the stage, even if the job was renamed.
-- If records are removed one by one, the last quarter of a large stage is left to Discard: see
-- stage_remove. For this purpose meta has the stage's size, and counts the records that have "passed".
-- The number of parts is computed only here, because every reading must give the same parts. A stage
-- that is not large is cut by the order of its records. In that case "parts" is not a number, so an
-- older version, which would cut the stage by hash into parts that differ from the ledger's, fails.
local card = {hash = 'HLEN', set = 'SCARD', zset = 'ZCARD'}
local part_rows = tonumber(ARGV[2])
local one_by_one = part_rows == 0

local meta = redis.call('HMGET', KEYS[3], 'id', 'parts', 'job')
local staged = redis.call('TYPE', KEYS[2]).ok
local function wanted(found)
  return found == ARGV[3] or found == ARGV[4]
end

if staged ~= 'none' then
  if not wanted(staged) then
    return {'wrong_type', KEYS[2], staged}
  end
  if meta[1] then
    redis.call('HDEL', KEYS[3], 'passed') -- the run that finds the stage reads all records that are left
    return {'staged', meta[1], tonumber(string.match(meta[2] or '', '^%d+')), redis.call(card[staged], KEYS[2]), meta[3] or ARGV[5]}
  end
  if not one_by_one then
    return {'orphan'}
  end
else
  if meta[1] and not one_by_one then
    return {'lost', meta[1]}
  end
  staged = redis.call('TYPE', KEYS[1]).ok
  if staged == 'none' then
    redis.call('UNLINK', KEYS[3])
    return {'nothing'}
  end
  if not wanted(staged) then
    return {'wrong_type', KEYS[1], staged}
  end
end

-- The order matters if Redis refuses one of these commands because its user lacks a permission:
-- whichever command is refused, no stage is made in part. PERSIST is the first command that
-- writes. It needs no memory, and after it a full memory refuses no other command.
local source = redis.call('EXISTS', KEYS[2]) == 1 and KEYS[2] or KEYS[1]
local size = redis.call(card[staged], source)
local parts = one_by_one and 0 or math.ceil(size / part_rows)
local kept = parts > 1 and size <= tonumber(ARGV[6]) and parts .. ' by order of ' .. size or parts
redis.call('PERSIST', source)
redis.call('HDEL', KEYS[3], 'passed', 'size', 'ends')
redis.call('HSET', KEYS[3], 'id', ARGV[1], 'parts', kept, 'job', ARGV[5])
if one_by_one and size >= tonumber(ARGV[6]) then
  redis.call('HSET', KEYS[3], 'size', size)
end
if source == KEYS[1] then
  local renamed = redis.pcall('RENAME', KEYS[1], KEYS[2])
  if renamed.err then
    redis.call('UNLINK', KEYS[3])
    return renamed
  end
end
return {'staged', ARGV[1], parts, size, ARGV[5]}
