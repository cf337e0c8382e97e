-- Does the writes of one batch exactly once, however often it is asked: a reply may be lost.
-- KEYS: number of the last batch that was done
-- ARGV: number of this batch, then commands: each the count of its words, and the words
-- Reply: 1, or 0 when the batch had been done before
if tonumber(redis.call('GET', KEYS[1]) or 0) >= tonumber(ARGV[1]) then
  return 0
end
local i = 2
while i <= #ARGV do
  local words = tonumber(ARGV[i])
  redis.call(unpack(ARGV, i + 1, i + words))
  i = i + words + 1
end
redis.call('SET', KEYS[1], ARGV[1])
return 1
