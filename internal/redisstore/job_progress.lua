-- Tells how far the running run of a job is.
-- KEYS: job hash
-- ARGV: run id, up to when in ms everything has been done by it, or "" if that is not so, then field, value...
-- Reply: 1, or 0 when another run is the job's running one
if redis.call('HGET', KEYS[1], 'running_id') ~= ARGV[1] then
  return 0
end
-- PERSIST is the first that writes: then a full memory refuses no later command, and flushes can make room.
redis.call('PERSIST', KEYS[1])
for i = 3, #ARGV, 2 do
  redis.call('HSET', KEYS[1], 'running_' .. ARGV[i], ARGV[i + 1])
end
if ARGV[2] ~= '' then
  redis.call('HSET', KEYS[1], 'last_success', ARGV[2], 'fresh', ARGV[2], 'consecutive_failures', 0)
end
return 1
