-- Moves the counts of some ids from their keys to the stage, and removes these ids from the staged index.
-- KEYS: staged index, stage, meta, the counter of each id
-- ARGV: stage's id, the ids (at most 250, because Redis serves no other client while the script runs)
-- Reply: 1, or 0 if the stage has another id or no id
--
-- The count of an id that is no longer in the staged index was moved. The present value of its counter
-- belongs to the next stage.
if redis.call('HGET', KEYS[3], 'id') ~= ARGV[1] then
  return 0
end
local kind = redis.call('TYPE', KEYS[1]).ok
if kind == 'none' then
  return 1
end
local has = kind == 'zset' and 'ZSCORE' or 'SISMEMBER'
local remove = kind == 'zset' and 'ZREM' or 'SREM'
local ids, keys = {}, {}
for i = 2, #ARGV do
  local there = redis.call(has, KEYS[1], ARGV[i])
  if there and there ~= 0 then
    ids[#ids + 1], keys[#keys + 1] = ARGV[i], KEYS[i + 2]
  end
end
if #ids == 0 then
  return 1
end
local counts, moved, emptied = redis.call('MGET', unpack(keys)), {}, {}
for i, count in ipairs(counts) do
  if not count then
    -- The counter does not exist, or the key is no counter. Such a key stays, and becomes a dead letter.
    local found = redis.call('TYPE', keys[i]).ok
    count = found ~= 'none' and 'a ' .. found .. ' and no counter'
  else
    emptied[#emptied + 1] = keys[i]
  end
  if count and count ~= '0' then
    moved[#moved + 1], moved[#moved + 2] = ids[i], count
  end
end

-- The order matters if Redis refuses one of these commands because its user lacks a permission. Until
-- the counters are deleted, all commands may be repeated. After that no command may be refused. So the
-- last command is tried first, with the stage's id, which is the id of no counter. It is also the first
-- command that writes, so a full memory refuses no later command. HLEN is also tried, because it must
-- not be refused between the two HSET.
redis.call('HLEN', KEYS[2])
redis.call(remove, KEYS[1], ARGV[1])
if #moved > 0 then
  redis.call('HSET', KEYS[2], unpack(moved))
  redis.call('HSET', KEYS[3], 'gathered', redis.call('HLEN', KEYS[2]))
end
if #emptied > 0 then
  redis.call('DEL', unpack(emptied))
end
redis.call(remove, KEYS[1], unpack(ids))
return 1
