-- Raises the epoch of the owner's term above a floor that a database has recorded.
-- KEYS: lock, term
-- ARGV: owner, floor
-- Reply: the epoch, or "lost" if the lock is not the owner's; error EPOCH if it is invalid
if holder() ~= ARGV[1] then
  return 'lost'
end
local last, floor = epochOf(redis.call('HGET', KEYS[2], 'epoch')) or 0, tonumber(ARGV[2])
if not plausible(math.max(last, floor), 0, clock()) then
  return redis.error_reply('EPOCH ' .. integer(math.max(last, floor)) .. ' is invalid')
end
local epoch = math.max(last, floor + 1)
beginWriting(KEYS[2])
redis.call('HSET', KEYS[2], 'epoch', integer(epoch), 'owner', ARGV[1])
return integer(epoch)
