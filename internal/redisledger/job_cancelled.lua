-- Answers an order to cancel runs of a job.
-- KEYS: job hash, control
-- ARGV: field of control, id of the order, "" to withdraw the order, or the answer, for the job hash
-- Reply: 1, or 0 if the order is gone: it was answered or withdrawn
if string.match(redis.call('HGET', KEYS[2], ARGV[1]) or '', '^%S+') ~= ARGV[2] then
  return 0
end
-- PERSIST writes first: then a full memory refuses no later command, and flushes can make room.
redis.call('PERSIST', KEYS[2])
redis.call('HDEL', KEYS[2], ARGV[1])
if ARGV[3] ~= '' then
  redis.call('HSET', KEYS[1], 'cancelled_id', ARGV[2], 'cancelled', ARGV[3])
end
return 1
