-- Counts the staged records of a key, whatever type of source has staged them.
-- KEYS: stage, meta, staged index
-- Reply: {count, id or "", job or ""}
local card = {hash = 'HLEN', set = 'SCARD', zset = 'ZCARD', list = 'LLEN'}
local count = 0
for _, key in ipairs({KEYS[1], KEYS[3]}) do
  local command = card[redis.call('TYPE', key).ok]
  if command then
    count = count + redis.call(command, key)
  end
end
local meta = redis.call('HMGET', KEYS[2], 'id', 'job')
return {count, meta[1] or '', meta[2] or ''}
