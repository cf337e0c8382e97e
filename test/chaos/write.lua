-- One write of a writer: applied once, however often it is sent.
-- KEYS: the writer's number of its last write, the hash of counters or the index of changes, the keys of rows
-- ARGV: number of this write, what, then
--   count:         field, delta...
--   put:           prefix, index type, then id, name, version, email...
--   drop:          prefix, index type, then id...
--   play:          prefix, index type, then id, delta...
--   push, append:  then id...: to a list, to a stream
-- The index type is set, zset, or none.
-- Reply: 1 applied, 0 applied before; an error if the write before it is missing
local last, number = tonumber(redis.call('GET', KEYS[1]) or '0'), tonumber(ARGV[1])
if last >= number then
  return 0
end
if last + 1 ~= number then
  return redis.error_reply('GAP write ' .. number .. ' follows ' .. last)
end
local function changed(id)
  if ARGV[4] == 'zset' then
    redis.call('ZADD', KEYS[2], number, id)
  elseif ARGV[4] == 'set' then
    redis.call('SADD', KEYS[2], id)
  end
end
if ARGV[2] == 'count' then
  for i = 3, #ARGV, 2 do
    redis.call('HINCRBY', KEYS[2], ARGV[i], ARGV[i + 1])
  end
elseif ARGV[2] == 'put' then
  for i = 5, #ARGV, 4 do
    local key = ARGV[3] .. ARGV[i]
    redis.call('HSET', key, 'name', ARGV[i + 1], 'version', ARGV[i + 2])
    if ARGV[i + 3] == '' then
      redis.call('HDEL', key, 'email')
    else
      redis.call('HSET', key, 'email', ARGV[i + 3])
    end
    changed(ARGV[i])
  end
elseif ARGV[2] == 'play' then
  for i = 5, #ARGV, 2 do
    redis.call('INCRBY', ARGV[3] .. ARGV[i], ARGV[i + 1])
    changed(ARGV[i])
  end
elseif ARGV[2] == 'push' then
  for i = 3, #ARGV do
    redis.call('RPUSH', KEYS[2], cjson.encode({id = ARGV[i], n = number}))
  end
elseif ARGV[2] == 'append' then
  for i = 3, #ARGV do
    redis.call('XADD', KEYS[2], '*', 'id', ARGV[i], 'n', number)
  end
else
  for i = 5, #ARGV do
    redis.call('DEL', ARGV[3] .. ARGV[i])
    changed(ARGV[i])
  end
end
redis.call('SET', KEYS[1], number)
return 1
