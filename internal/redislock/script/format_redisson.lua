-- The lock as Redisson's RLock stores it: a hash with one field uuid:thread and its hold count. Ours is the owner, on
-- thread 1, with count 1: a repeated request must not raise it.
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
  -- Waiting RLocks listen for the message 0 (unlocked). Its channel hashes to the lock's slot.
  local name = string.find(KEYS[1], '{', 1, true) and KEYS[1] or '{' .. KEYS[1] .. '}'
  redis.pcall('PUBLISH', 'redisson_lock__channel:' .. name, '0')
end
