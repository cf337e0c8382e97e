-- Records the progress of a run.
-- KEYS: job hash
-- ARGV: run id, time in ms before which everything has been flushed, or "", progress
-- Reply: 1, or 0 if the run is not open
if not redis.call('HGET', KEYS[1], 'run:' .. ARGV[1]) then
  return 0
end
-- PERSIST writes first: then a full memory refuses no later command, and flushes can make room.
redis.call('PERSIST', KEYS[1])
redis.call('HSET', KEYS[1], 'progress:' .. ARGV[1], ARGV[3])
if ARGV[2] ~= '' then
  redis.call('HSET', KEYS[1], 'last_success', ARGV[2], 'fresh', ARGV[2], 'consecutive_failures', 0)
end
return 1
