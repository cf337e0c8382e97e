-- Records how a run ended: in the history, and as the job's last result.
-- KEYS: job hash, runs stream
-- ARGV: how many runs to keep, run id, state, finished in ms, why the job is paused with it or "", then field, value...
--       of the run, of which the first is its id
-- Reply: 1, or 0 when this run was recorded before (the first reply was lost)
--
-- A run that no longer is the job's running one (a deposed leader reports late, the
-- next run has been claimed) goes into the history only.
local state, finished, pause = ARGV[3], ARGV[4], ARGV[5]
for _, entry in ipairs(redis.call('XREVRANGE', KEYS[2], '+', '-', 'COUNT', 20)) do
  if entry[2][2] == ARGV[2] then
    return 0
  end
end
-- PERSIST is the first that writes: then a full memory refuses no later command, and flushes can make room.
redis.call('PERSIST', KEYS[1])
redis.call('XADD', KEYS[2], 'MAXLEN', '~', ARGV[1], '*', unpack(ARGV, 6))
if redis.call('HGET', KEYS[1], 'running_id') ~= ARGV[2] then
  return 1
end
redis.call('HDEL', KEYS[1], 'running_batches', 'running_backlog')
local started
for i = 6, #ARGV, 2 do
  if ARGV[i] == 'started' then
    started = ARGV[i + 1]
  end
  redis.call('HDEL', KEYS[1], 'running_' .. ARGV[i])
  redis.call('HSET', KEYS[1], 'result_' .. ARGV[i], ARGV[i + 1])
end
if state == 'succeeded' then
  redis.call('HSET', KEYS[1], 'last_success', finished, 'fresh', started, 'consecutive_failures', 0)
elseif state ~= 'cancelled' then
  redis.call('HINCRBY', KEYS[1], 'consecutive_failures', 1)
end
if pause ~= '' and redis.call('HSETNX', KEYS[1], 'paused_reason', pause) == 1 then
  redis.call('HSET', KEYS[1], 'paused_at', finished)
end
return 1
