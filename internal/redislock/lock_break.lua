-- Takes the lock away from its holder. The holder may trust it until its lease would have ended: until then
-- no node wins. The epoch rises, and the term belongs to no incarnation any more, so the holder's next renewal finds that it has
-- lost, and the acquire script finds a quarantine.
-- An invalid epoch is dropped, whether the lock is held or not: the next one follows from Redis'
-- clock.
-- KEYS: lock, term, events, quarantine
-- ARGV: reason, wake channel, the caller's time in ms: the later of the two clocks counts
-- Reply: {"free", "", "", "", 0}, or {"broken" or "forgotten", owner or "", its node id or "", its epoch or "", ms until the lock
--   may be had}
local owner = holder()
local term = redis.call('HMGET', KEYS[2], 'epoch', 'owner', 'node_id', 'ttl_ms', 'floor')
local epoch = epochOf(term[1])
local counts = (epoch or not term[1]) and plausible(math.max(epoch or 0, tonumber(term[5]) or 0), 0, math.max(clock(), tonumber(ARGV[3])))
if not owner and counts then
  return {'free', '', '', '', 0}
end
beginWriting(KEYS[2])
-- A lock without an expiry is another program's. Only the operator knows how long that program trusts it.
local left = owner and math.max(redis.call('PTTL', KEYS[1]), 0) or tonumber(term[4]) or 0
local ours = owner and term[2] == owner
if not counts then
  redis.call('HDEL', KEYS[2], 'epoch', 'floor')
  redis.call('HSET', KEYS[2], 'forgot', '1') -- nodes that led or saw it still know it
elseif epoch then
  redis.call('HSET', KEYS[2], 'epoch', integer(epoch + 1))
end
redis.call('HDEL', KEYS[2], 'run_id')
-- No quarantine is longer than the longest known lease; another program's lease counts.
redis.call('HSET', KEYS[2], 'quarantine_run', incarnation().name, 'ended', '1', 'held_until', integer(clock() + left),
  'ttl_ms', integer(math.max(tonumber(term[4]) or 0, left)))
if left > 0 then
  redis.call('SET', KEYS[4], 'broken', 'PX', left)
else
  redis.call('DEL', KEYS[4])
end
if owner then
  drop()
end
addEvent(KEYS[3], 'broken', ours and term[3] or '', ours and integer(epoch or 0) or '', ARGV[1])
redis.pcall('PUBLISH', ARGV[2], 'control')
return {counts and 'broken' or 'forgotten', owner or '', ours and term[3] or '', ours and integer(epoch or 0) or '', left}
