-- Asks the current leader, and only this one, to step down.
-- KEYS: lock, term, control
-- ARGV: successor or "", reason, wake channel
-- Reply: {"asked", owner, node id} or {"nobody"}
local holder = holder()
if not holder then
  return {'nobody'}
end
local term = redis.call('HMGET', KEYS[2], 'owner', 'node_id')
redis.call('HSET', KEYS[3], 'stepdown_owner', holder, 'stepdown_to', ARGV[1], 'stepdown_reason', ARGV[2])
redis.pcall('PUBLISH', ARGV[3], 'control')
return {'asked', holder, term[1] == holder and term[2] or ''}
