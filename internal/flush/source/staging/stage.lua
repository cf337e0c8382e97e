-- Freezes what is pending in a live key under an id, or finds what an earlier run froze.
-- KEYS: live, stage, meta
-- ARGV: new id, records a part, wanted type, another wanted type or "", job, what is large
-- Reply: {"staged", id, parts, size, job}, {"nothing"}, {"wrong_type", key, type},
--        {"orphan"}: a stage without an id, or {"lost", id}: an id without its stage
--
-- Records a part is 0 for a source that is idempotent and removes its records one
-- by one. Its drained stage has vanished and leaves the id behind, and a stage
-- that has lost its id may simply be read again under a new one. For any other
-- source both mean that somebody else touched the keys.
-- The job of the reply is the one that has staged it, whatever it is called now.
-- Of a large stage whose records are removed one by one the last quarter is left to
-- Discard: see stage_remove. Its size is kept for that, and how many have "passed".
-- The number of parts is computed once, here: it must be the same at every reading. Parts of one that is
-- not large are cut by the order of its records. An older version, which knows parts by hash only, would
-- take others for those in the ledger, and fails at what is no number.
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
    redis.call('HDEL', KEYS[3], 'passed') -- who finds it reads all that is left
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

-- The order matters if Redis refuses one of these (its user lacks a permission):
-- whatever is refused, nothing is half staged. PERSIST is the first that writes: then
-- a full memory refuses no later one.
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
