-- Answers an order to cancel runs of a job.
-- KEYS: job hash, control
-- ARGV: field of control, id of the order, "" to take the order back, or the answer, for the job hash
-- Reply: 1, or 0 when the order is no longer there: it was answered or taken back
if string.match(redis.call('HGET', KEYS[2], ARGV[1]) or '', '^%S+') ~= ARGV[2] then
  return 0
end
-- PERSIST is the first that writes: then a full memory refuses no later command, and flushes can make room.
redis.call('PERSIST', KEYS[2])
redis.call('HDEL', KEYS[2], ARGV[1])
if ARGV[3] ~= '' then
  redis.call('HSET', KEYS[1], 'cancelled_id', ARGV[2], 'cancelled', ARGV[3])
end
return 1
