-- Removes places from the list of stages, unless the list has another edition.
-- KEYS: list of stages
-- ARGV: edition, place...
-- Reply: 1; 0 if the list has another edition
if (redis.call('HGET', KEYS[1], '') or '') ~= ARGV[1] then
  return 0
end
for i = 2, #ARGV do
  redis.call('HDEL', KEYS[1], ARGV[i])
end
return 1
