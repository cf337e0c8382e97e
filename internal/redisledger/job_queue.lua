-- Extends a request for a run that waits for another run to end.
-- KEYS: control
-- ARGV: field of control, run id, ms until the request expires
-- Reply: 1, or 0 if the request is gone: it was claimed, refused or withdrawn
local id, who = string.match(redis.call('HGET', KEYS[1], ARGV[1]) or '', '^(%S+) %d+ %S+ (.*)$')
if id ~= ARGV[2] then
  return 0
end
-- PERSIST writes first: then a full memory refuses no later command, and flushes can make room.
redis.call('PERSIST', KEYS[1])
redis.call('HSET', KEYS[1], ARGV[1], string.format('%s %.0f queued %s', id, clock() + tonumber(ARGV[3]), who))
return 1
