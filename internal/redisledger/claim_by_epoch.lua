-- The lock is in other stores. The leader is the node with the highest epoch that has claimed here. KEYS[1] is the fence, a hash.
local function instead(owner, epoch)
  local last = redis.call('HMGET', KEYS[1], 'epoch', 'owner')
  local highest = tonumber(last[1]) or 0
  -- An epoch 30 days above this one and the clock is a forgery. See lock_lib.lua.
  if highest > math.max(tonumber(epoch), clock()) + 2592000000 then
    highest = 0
  end
  if highest > tonumber(epoch) or highest == tonumber(epoch) and last[2] ~= owner then
    return last[2] .. ' in epoch ' .. last[1]
  end
  -- PERSIST writes first: then a full memory refuses no later command.
  redis.call('PERSIST', KEYS[1])
  redis.call('HSET', KEYS[1], 'epoch', epoch, 'owner', owner)
end
