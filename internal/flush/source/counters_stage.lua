-- Freezes the ids of the counters that have changed, or finds the stage of an earlier run.
-- KEYS: live index, staged index, stage, meta
-- ARGV: new id, job
-- Reply: {"gathering" or "sealed", id, parts, size, job}, {"nothing"}, {"wrong_type", key, type},
--        {"orphan"}: there are staged counts without an id, or {"lost", id}: staged counts are missing
--
-- A stage is first gathered: while ids are in the staged index, scripts move the counts of these ids
-- from their keys to the stage, which is a hash. Then the stage is sealed: the number of its parts is
-- recorded, and every reading of the stage returns the same content.
local card = {hash = 'HLEN', set = 'SCARD', zset = 'ZCARD'}
local function size(key)
  local found = redis.call('TYPE', key).ok
  return found == 'none' and 0 or redis.call(card[found], key)
end
for i, key in ipairs(KEYS) do
  local found = redis.call('TYPE', key).ok
  local right = found == 'none' or i <= 2 and (found == 'set' or found == 'zset') or i > 2 and found == 'hash'
  if not right then
    return {'wrong_type', key, found}
  end
end

local meta = redis.call('HMGET', KEYS[4], 'id', 'parts', 'job', 'gathered')
local waiting, gathered = size(KEYS[2]), size(KEYS[3])
if meta[1] then
  if tonumber(meta[4] or gathered) ~= gathered then
    return {'lost', meta[1]}
  end
  return {meta[2] and 'sealed' or 'gathering', meta[1], tonumber(string.match(meta[2] or '0', '^%d+')), waiting + gathered, meta[3] or ARGV[2]}
end
if gathered > 0 then
  return {'orphan'}
end
-- If a staged index has lost its id, no count is lost, because the counts are still in their keys.
local source = waiting > 0 and KEYS[2] or KEYS[1]
if redis.call('EXISTS', source) == 0 then
  redis.call('UNLINK', KEYS[4])
  return {'nothing'}
end
-- PERSIST is the first command that writes. It needs no memory, and after it a full memory refuses no other command.
local found = size(source)
redis.call('PERSIST', source)
redis.call('HSET', KEYS[4], 'id', ARGV[1], 'job', ARGV[2], 'gathered', 0)
if source == KEYS[1] then
  local renamed = redis.pcall('RENAME', KEYS[1], KEYS[2])
  if renamed.err then
    redis.call('UNLINK', KEYS[4])
    return renamed
  end
end
return {'gathering', ARGV[1], 0, found, ARGV[2]}
