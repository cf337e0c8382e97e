-- Enters ids into an index of changes, as a producer would, for rows that are to be
-- flushed again.
-- KEYS: live, stage, meta
-- ARGV: new id, job, member... (at most 400: Redis serves nobody else meanwhile)
-- Reply: {"live"}, {"staged"} or {"wrong_type", key, type}
--
-- A live index that is there says itself whether its producers use a set or a sorted
-- set. One that is not must not be made in the wrong type: their next command would
-- fail. The stage tells, if it once was the live index. If nothing tells, the ids
-- become a stage of their own, or join one that was made here before. That gets a
-- new id: a run that reads it under the old one then removes nothing more from it, for
-- it might remove what it has read before the mark, and fails; the next one begins
-- anew.
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
-- Scores are the producers' own, most likely times in a unit of theirs: the highest one
-- is the nearest to now. What waits already keeps its place.
local newest = redis.call('ZREVRANGE', from, 0, 0, 'WITHSCORES')[2]
local args = {}
for i = 3, #ARGV do
  args[#args + 1] = newest
  args[#args + 1] = ARGV[i]
end
redis.call('ZADD', KEYS[1], 'NX', unpack(args))
return {'live'}
