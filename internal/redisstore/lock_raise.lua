-- Lifts the epoch of the owner's term above a floor that some database has recorded.
-- KEYS: lock, term
-- ARGV: owner, floor
-- Reply: the epoch, or "lost" if the lock is not the owner's; error EPOCH if it cannot rise
if holder() ~= ARGV[1] then
  return 'lost'
end
local epoch = math.max(epochOf(redis.call('HGET', KEYS[2], 'epoch')) or 0, tonumber(ARGV[2]) + 1)
if not (epoch < 2 ^ 53) then
  return redis.error_reply('EPOCH ' .. ARGV[2] .. ' cannot be counted on from')
end
beginWriting(KEYS[2])
redis.call('HSET', KEYS[2], 'epoch', integer(epoch), 'owner', ARGV[1])
return integer(epoch)
