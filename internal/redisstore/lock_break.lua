-- Takes the lock away from whoever holds it. A holder may trust it for as long as its lease would have lasted: until then
-- nobody wins. The epoch rises, and the term is of no incarnation any more, so the holder's next renewal finds that it has
-- lost, and the acquiring script a quarantine that has begun.
-- KEYS: lock, term, events, quarantine
-- ARGV: reason, wake channel
-- Reply: {"free", "", "", "", 0} or {"broken", owner, its node id or "", its epoch or "", ms until the lock may be had}
local owner = holder()
if not owner then
  return {'free', '', '', '', 0}
end
beginWriting(KEYS[2])
-- A lock without an expiry is another program's. How long that one trusts it only the operator knows.
local left = math.max(redis.call('PTTL', KEYS[1]), 0)
local term = redis.call('HMGET', KEYS[2], 'epoch', 'owner', 'node_id', 'ttl_ms')
local ours = term[2] == owner
local epoch = epochOf(term[1])
if epoch then
  redis.call('HSET', KEYS[2], 'epoch', integer(epoch + 1))
end
redis.call('HDEL', KEYS[2], 'run_id')
-- No quarantine lasts longer than the longest lease that is known: another program's counts as one.
redis.call('HSET', KEYS[2], 'quarantine_run', incarnation(), 'ended', '1', 'ttl_ms', integer(math.max(tonumber(term[4]) or 0, left)))
if left > 0 then
  redis.call('SET', KEYS[4], 'broken', 'PX', left)
else
  redis.call('DEL', KEYS[4])
end
drop()
tell(KEYS[3], 'broken', ours and term[3] or '', ours and integer(epoch or 0) or '', ARGV[1])
redis.pcall('PUBLISH', ARGV[2], 'control')
return {'broken', owner, ours and term[3] or '', ours and integer(epoch or 0) or '', left}
