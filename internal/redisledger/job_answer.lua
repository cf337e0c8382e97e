-- Ends an unclaimed request to run a job now.
-- KEYS: job hash, control
-- ARGV: field of control, run id, the reason of the refusal, or "" to withdraw it
-- Reply: 1, or 0 if the request is gone: it was claimed, refused or withdrawn
local id = string.match(redis.call('HGET', KEYS[2], ARGV[1]) or '', '^%S+')
if id ~= ARGV[2] then
  return 0
end
redis.call('HDEL', KEYS[2], ARGV[1])
if ARGV[3] ~= '' then
  redis.call('HSET', KEYS[1], 'refused_id', id, 'refused_reason', ARGV[3])
end
return 1
