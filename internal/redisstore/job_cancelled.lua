-- Answers an order to cancel runs of a job, and drops the job's retrial if the order was for all.
-- KEYS: job hash, control
-- ARGV: field of control, id of the order, "" to take the order back, or the answer
-- Reply: 1, or 0 when the order is no longer there: it was answered or taken back
--
-- The answer is left in the job hash, and which attempt will not be made: "" if none was to come.
local id, run = string.match(redis.call('HGET', KEYS[2], ARGV[1]) or '', '^(%S+) %d+ (%S+)')
if id ~= ARGV[2] then
  return 0
end
-- PERSIST is the first that writes: then a full memory refuses no later command, and flushes can make room.
redis.call('PERSIST', KEYS[2])
redis.call('HDEL', KEYS[2], ARGV[1])
if ARGV[3] == '' then
  return 1
end
local retry = ''
if run == '*' then
  retry = string.match(redis.call('HGET', KEYS[1], 'retry') or '', '^%S+ (%S+)') or ''
  redis.call('HDEL', KEYS[1], 'retry')
end
redis.call('HSET', KEYS[1], 'cancelled_id', id, 'cancelled_retry', retry, 'cancelled', ARGV[3])
return 1
