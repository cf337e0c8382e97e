-- Takes the lock away from whoever holds it. A holder may trust it for as long as its lease would have lasted: until then
-- nobody wins. The epoch rises, and the term is of no incarnation any more, so the holder's next renewal finds that it has
-- lost, and the acquiring script a quarantine that has begun.
-- An epoch that cannot be counted on from is forgotten, whether the lock is held or not: the next one goes on from Redis'
-- clock.
-- KEYS: lock, term, events, quarantine
-- ARGV: reason, wake channel, the asker's time in ms: of the two clocks the one that is behind may be the wrong one
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
-- A lock without an expiry is another program's. How long that one trusts it only the operator knows.
local left = owner and math.max(redis.call('PTTL', KEYS[1]), 0) or tonumber(term[4]) or 0
local ours = owner and term[2] == owner
if not counts then
  redis.call('HDEL', KEYS[2], 'epoch', 'floor')
  redis.call('HSET', KEYS[2], 'forgot', '1') -- nodes that have led, or heard of it, still know it
elseif epoch then
  redis.call('HSET', KEYS[2], 'epoch', integer(epoch + 1))
end
redis.call('HDEL', KEYS[2], 'run_id')
-- No quarantine lasts longer than the longest lease that is known: another program's counts as one.
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
tell(KEYS[3], 'broken', ours and term[3] or '', ours and integer(epoch or 0) or '', ARGV[1])
redis.pcall('PUBLISH', ARGV[2], 'control')
return {counts and 'broken' or 'forgotten', owner or '', ours and term[3] or '', ours and integer(epoch or 0) or '', left}
