-- The lock as Redisson's RLock keeps it: a hash with one field uuid:thread and its hold count. Ours is the owner's, on
-- thread 1, held once: asking again must not count.
local function holder()
  local field = redis.call('HKEYS', KEYS[1])[1]
  return field and (string.match(field, '^(.*):1$') or field)
end
local function take(owner, ttl)
  redis.call('DEL', KEYS[1])
  redis.call('HSET', KEYS[1], owner .. ':1', 1)
  redis.call('PEXPIRE', KEYS[1], ttl)
end
local function drop()
  redis.call('DEL', KEYS[1])
  -- What waiting RLocks listen for: the message 0, unlocked. Its channel has the lock's slot, too.
  local name = string.find(KEYS[1], '{', 1, true) and KEYS[1] or '{' .. KEYS[1] .. '}'
  redis.pcall('PUBLISH', 'redisson_lock__channel:' .. name, '0')
end
