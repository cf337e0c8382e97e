-- Adds ids to an index of changes, as a producer would, so that their rows are flushed again.
-- KEYS: live, stage, meta
-- ARGV: new id, job, member... (at most 400, because Redis serves no other client while the script runs)
-- Reply: {"live"}, {"staged"} or {"wrong_type", key, type}
--
-- If the live index exists, its type shows whether the producers use a set or a sorted set.
-- If it is missing, it must not be created with the wrong type, because the next command of
-- a producer would fail. The type of the stage shows the right type if the stage was once
-- the live index. If the type is unknown, the ids become a new stage, or are added to a
-- stage that this script made before. That stage gets a new id. Therefore a run that reads
-- the stage under the old id removes nothing more from it and fails; otherwise it might
-- remove an id whose row it has read before the mark. The next run reads the stage again.
local live = redis.call('TYPE', KEYS[1]).ok
local stage = redis.call('TYPE', KEYS[2]).ok
for i, found in ipairs({live, stage}) do
  if found ~= 'none' and found ~= 'set' and found ~= 'zset' then
    return {'wrong_type', KEYS[i], found}
  end
end

local like, from = live, KEYS[1]
if live == 'none' then
  like, from = stage, KEYS[2]
  if stage == 'none' or stage == 'set' and redis.call('HGET', KEYS[3], 'marked') then
    redis.call('HSET', KEYS[3], 'id', ARGV[1], 'parts', 0, 'job', ARGV[2], 'marked', 1)
    redis.call('SADD', KEYS[2], unpack(ARGV, 3))
    return {'staged'}
  end
end

if like == 'set' then
  redis.call('SADD', KEYS[1], unpack(ARGV, 3))
  return {'live'}
end
-- Only the producers know the meaning of scores. Most likely they are times, so the highest
-- score is the nearest to the present. Ids that are already in the index keep their score.
local newest = redis.call('ZREVRANGE', from, 0, 0, 'WITHSCORES')[2]
local args = {}
for i = 3, #ARGV do
  args[#args + 1] = newest
  args[#args + 1] = ARGV[i]
end
redis.call('ZADD', KEYS[1], 'NX', unpack(args))
return {'live'}
