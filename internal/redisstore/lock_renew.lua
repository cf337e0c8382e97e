-- Extends the lease if it is still the owner's, and brings back what operators ask of the leader.
-- KEYS: lock, nodes, control, term, events, quarantine
-- ARGV: owner, ttl in ms, node id, presence (a JSON object), epoch, "1" on a new connection
-- Reply: {"renewed", "1" if asked to step down, successor or "", reason or ""} or {"lost", owner found or ""}
--
-- It is sent inside the owner's trust window only. So in an incarnation of Redis in which nobody has won yet, which the
-- term's run_id tells, the lock is the owner's also where Redis has lost it, and the quarantine has nobody to wait for.
local owner, ttl, node, epoch = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[5])
local now = clock()
local holder = holder()
if holder ~= owner or ARGV[6] == '1' then
  local term = redis.call('HMGET', KEYS[4], 'epoch', 'owner', 'run_id')
  local run_id, last = incarnation(), tonumber(term[1]) or 0
  if holder ~= owner then
    -- What else may be there is the lock of an earlier term, from a snapshot or a replica that lagged.
    local stale = holder and holder == term[2] and last < epoch
    if term[3] == run_id or term[2] and last > epoch or holder and not stale then
      return {'lost', holder or ''}
    end
    tell(KEYS[5], 'restored', node, integer(epoch), 'redis had lost the lock; its leader has put it back')
    take(owner, ttl)
  end
  if term[3] ~= run_id then
    redis.call('HSET', KEYS[4], 'epoch', integer(math.max(last, epoch)), 'owner', owner, 'node_id', node, 'ttl_ms', ttl, 'run_id', run_id, 'ended', '0')
    redis.call('HSETNX', KEYS[4], 'since', integer(now))
    redis.call('HDEL', KEYS[4], 'quarantine_run')
    redis.call('DEL', KEYS[6])
  end
end
redis.call('PEXPIRE', KEYS[1], ttl)
present(KEYS[2], node, ARGV[4], 'leading', now)
local order = redis.call('HMGET', KEYS[3], 'stepdown_owner', 'stepdown_to', 'stepdown_reason', 'paused_at', 'paused_reason')
if order[4] then
  return {'renewed', '1', '', 'paused ' .. (order[5] or '')}
end
return {'renewed', order[1] == owner and '1' or '0', order[2] or '', order[3] or ''}
