-- Extends the lease if it is still the owner's, and returns pending orders for the leader.
-- KEYS: lock, nodes, control, term, events, quarantine
-- ARGV: owner, ttl in ms, node id, presence (a JSON object) or "" to keep the written one, epoch, "1" on a new
--   connection, proof or ""
-- Reply: {"renewed", "1" if asked to step down, successor or "", reason or "", its code or ""}, {"lost", owner found or ""}
--   or {"prove", proof}: ask again with this proof
--
-- It is sent inside the owner's trust window only. So in an incarnation of Redis in which no node has won yet, which the
-- term's run_id and replid show, the lock is the owner's even if Redis has lost it, and the quarantine is not needed.
-- But the request may be old, and others may have led since. A word that did not exist earlier proves that it was sent
-- after Redis had lost its data.
local owner, ttl, node, epoch = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[5])
beginWriting(KEYS[4])
local holder = holder()
local term = redis.call('HMGET', KEYS[4], 'epoch', 'owner', 'run_id', 'proof', 'replid')
local here = incarnation()
local confirmed = confirmed(term[3], term[5], here)
if holder ~= owner or ARGV[6] == '1' or term[2] ~= owner or not confirmed then
  local last = epochOf(term[1]) or 0
  if holder ~= owner then
    -- Any other value is the lock of an earlier term, from a snapshot or a replica that lagged.
    local stale = holder and holder == term[2] and last < epoch
    if confirmed or term[2] and last > epoch or holder and not stale then
      return {'lost', holder or ''}
    end
  end
  if not confirmed then
    local proof = term[4]
    if not (proof and string.sub(proof, 1, #here.name + 1) == here.name .. ' ') then
      local time = redis.call('TIME')
      proof = here.name .. ' ' .. time[1] .. ' ' .. time[2]
      redis.call('HSET', KEYS[4], 'proof', proof)
    end
    if ARGV[7] ~= proof then
      return {'prove', proof}
    end
    if holder ~= owner then
      addEvent(KEYS[5], 'restored', node, integer(epoch), '')
    end
    take(owner, ttl) -- written again even if present: without scripts it may expire before this is done
    redis.call('HSET', KEYS[4], 'epoch', integer(math.max(last, epoch)), 'owner', owner, 'node_id', node, 'ttl_ms', ttl,
      'run_id', here.run_id, 'ended', '0')
    redis.call('HSETNX', KEYS[4], 'since', integer(clock()))
    redis.call('HDEL', KEYS[4], 'quarantine_run', 'quarantine_since', 'proof')
    redis.call('DEL', KEYS[6])
  end
end
-- The owner knows its epoch. It may have been raised after this was sent, but only plausibly.
if term[1] ~= ARGV[5] and not (epochOf(term[1]) and plausible(epochOf(term[1]), epoch, clock())) then
  redis.call('HSET', KEYS[4], 'epoch', ARGV[5])
end
if here.replid ~= '' and term[5] ~= here.replid then
  redis.call('HSET', KEYS[4], 'replid', here.replid)
end
redis.call('PEXPIRE', KEYS[1], ttl)
redis.call('HSET', KEYS[4], 'held_until', integer(clock() + tonumber(ttl)))
if ARGV[4] ~= '' then
  present(KEYS[2], node, ARGV[4], 'leading', clock())
end
local order = redis.call('HMGET', KEYS[3], 'stepdown_owner', 'stepdown_to', 'stepdown_reason', 'paused_at', 'paused_reason', 'stepdown_code')
if order[4] then
  return {'renewed', '1', '', order[5] or '', 'paused'}
end
if order[1] ~= owner then
  return {'renewed', '0', '', '', ''}
end
return {'renewed', '1', order[2] or '', order[3] or '', order[6] or ''}
