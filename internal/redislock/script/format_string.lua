-- The lock is a string with the owner and nothing else, as other clients write it.
local function holder() return redis.call('GET', KEYS[1]) end
local function take(owner, ttl) redis.call('SET', KEYS[1], owner, 'PX', ttl) end
local function drop() redis.call('DEL', KEYS[1]) end
