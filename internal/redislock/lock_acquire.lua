-- Takes the lock if it is free and may be taken, and gives its term an epoch above every earlier one.
-- KEYS: lock, term, nodes, control, events, quarantine
-- ARGV: owner, ttl in ms, node id, presence (a JSON object), epoch floor, priority, "1" for an observer or "2" for one that defers,
--   longest reservation in ms, longest lease in ms that the node has seen, "lease" or "quarantine" if it has seen one that
--   still runs by its own clock, else ""; Redis' time in ms of the last "prove" reply, or ""
-- Reply: {"prove", Redis' time in ms, 0, 0, 0}: ask again with this time; {"won", "", 0, epoch, 0, ms without a leader or 0}
--   (without the last on a repeated request); {"held", holder's node id or "", ms left or -1, its epoch or 0, its lease in ms or 0},
--   or {"wait", code, ms left or -1, last epoch or 0, 0, what the code is about or ""}; error EPOCH if the epoch is invalid
--
-- A repeated request of the owner that holds the lock renews it and returns the same epoch.
-- The lock itself is written last: after an error it is not taken.
local owner, ttl, node, floor, priority = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[5]), tonumber(ARGV[6])
beginWriting(KEYS[2])
local now = clock()
local holder = holder()
local t = redis.call('HMGET', KEYS[2], 'epoch', 'owner', 'node_id', 'ended', 'run_id', 'ttl_ms', 'quarantine_run', 'proof',
  'floor', 'replid', 'held_until', 'forgot', 'quarantine_since')
local term = {epoch = t[1], owner = t[2], node = t[3], ended = t[4], run_id = t[5], ttl = tonumber(t[6]) or 0, quarantine = t[7],
  proof = t[8], floor = tonumber(t[9]) or 0, replid = t[10], held_until = tonumber(t[11])}
local here = incarnation()
local last = epochOf(term.epoch)
if t[12] and not plausible(floor, 0, now) then
  floor = 1 -- there was a term; an operator dropped its epoch
end
local before = last or not term.epoch and 0
local counts = before and plausible(math.max(before, term.floor), floor, now) and math.max(before, floor, term.floor) + 1 < 2 ^ 53
local lease = math.max(tonumber(ttl), term.ttl, tonumber(ARGV[9]))

-- The lock is gone before its lease ended: evicted, deleted, or Redis' clock jumped. It is treated as a loss of data.
local vanished = ARGV[10] == 'lease' and not holder and term.owner and term.ended ~= '1'
-- What a node has seen counts only while that node still waits for the reply. In a Redis that hung, requests are older
-- than a lease: a node that asks again is still there.
local early = vanished or ARGV[10] == 'quarantine' and redis.call('PTTL', KEYS[6]) <= 0
if early and not (tonumber(ARGV[11]) and math.abs(now - tonumber(ARGV[11])) < 1000) then
  return {'prove', integer(now), 0, '0', 0}
end
if vanished then
  redis.call('HDEL', KEYS[2], 'run_id')
  term.run_id = false
end
-- No owner has won or renewed in this incarnation of Redis: it has restarted, failed over or lost its data, and a leader
-- that it does not know may still trust its lease. Without any known earlier term there is no such leader.
local elsewhere = not confirmed(term.run_id, term.replid, here)
local unconfirmed = elsewhere and (term.epoch or term.quarantine or term.proof or floor > 0)

-- Returns the ms left, at most one lease: a clock of Redis that is set back would lengthen it.
local function bounded(key)
  local left = redis.call('PTTL', key)
  if left == -1 or left > lease then
    redis.call('PEXPIRE', key, integer(lease))
    return lease
  end
  return left
end

-- Returns for how many ms no new owner may win. A quarantine begins once per incarnation; the term records it. The floor
-- that a waiting node knows is stored there for the others.
local since = tonumber(t[13]) -- since when the lock is free in the quarantine
local function quarantine()
  if not unconfirmed then
    return 0
  end
  if floor > term.floor and floor + 1 < 2 ^ 53 then
    redis.call('HSET', KEYS[2], 'floor', integer(floor))
  end
  -- Nodes that cannot read the incarnation share one quarantine.
  if term.quarantine and (term.quarantine == here.name or term.quarantine == here.run_id or term.quarantine == '' or here.name == '') then
    local left = bounded(KEYS[6])
    if left > 0 or not vanished and ARGV[10] ~= 'quarantine' then
      return math.max(left, 0)
    end
  end
  -- Without a run_id the leader notices the quarantine, and an incarnation that comes back is not confirmed.
  redis.call('HDEL', KEYS[2], 'run_id', 'quarantine_since')
  since = nil
  redis.call('HSET', KEYS[2], 'quarantine_run', here.name, 'ttl_ms', integer(lease))
  redis.call('SET', KEYS[6], here.name, 'PX', integer(lease))
  addEvent(KEYS[5], 'quarantined', node, integer(last or 0), '')
  return lease
end

if priority > 0 and ARGV[7] ~= '1' then
  redis.call('HSET', KEYS[4], 'priority:' .. node, ARGV[6] .. ' ' .. integer(now))
end

if holder and holder ~= owner then
  quarantine() -- runs in parallel with the lease
  present(KEYS[3], node, ARGV[4], 'standby', now)
  if term.owner ~= holder then
    return {'held', '', redis.call('PTTL', KEYS[1]), '0', 0}
  end
  return {'held', term.node or '', bounded(KEYS[1]), integer(counts and before or 0), term.ttl}
end
if holder and term.owner == holder and last and counts then
  present(KEYS[3], node, ARGV[4], 'leading', now)
  redis.call('PEXPIRE', KEYS[1], ttl)
  return {'won', '', 0, integer(last), 0}
end

if not counts then
  return redis.error_reply('EPOCH ' .. string.sub(term.epoch or '', 1, 30) .. ' in ' .. KEYS[2] .. ' is invalid (floor '
    .. integer(math.max(floor, term.floor)) .. ')')
end

local function wait(code, ms, about)
  present(KEYS[3], node, ARGV[4], 'standby', now)
  return {'wait', code, ms, integer(before), 0, about or ''}
end
if not holder then
  local left = quarantine()
  if unconfirmed and not since then
    since = now
    redis.call('HSET', KEYS[2], 'quarantine_since', integer(now))
  end
  local control, others = {}, redis.call('HGETALL', KEYS[4])
  for i = 1, #others, 2 do
    control[others[i]] = others[i + 1]
  end
  if control.paused_at then
    return wait('paused', -1, control.paused_reason)
  end
  if left > 0 then
    return wait('quarantine', left)
  end
  if ARGV[7] == '1' then
    return wait('left', -1)
  end
  local reserved = (tonumber(control.reserved_until) or 0) - now
  local kept = control.reserved_for and reserved > 0 and reserved <= tonumber(ARGV[8])
  if kept and control.reserved_for ~= node then
    return wait('reserved', reserved, control.reserved_for)
  end
  -- A live node of a higher priority goes first, but only for a moment: it may be dead. The last leader does not: it
  -- would lead if it could, or has just given up the lock.
  local first, highest = nil, priority
  for name, value in pairs(control) do
    local other = string.match(name, '^priority:(.*)$')
    local rank, seen = string.match(value, '^(%d+) (%d+)$')
    if other and rank and tonumber(rank) > highest and other ~= node and other ~= term.node and math.abs(now - tonumber(seen)) < 60000 then
      first, highest = other, tonumber(rank)
    end
  end
  if first and not kept then
    local deferred = tonumber(control.deferred_until)
    if not deferred or deferred > now + 500 then
      deferred = now + 500
      redis.call('HSET', KEYS[4], 'deferred_until', integer(deferred))
    end
    if deferred > now then
      return wait('priority', deferred - now, first .. ', which has priority ' .. integer(highest))
    end
  end
  if ARGV[7] == '2' and not kept then
    return wait('left', -1)
  end
end

-- An unconfirmed incarnation may have lost epochs. The next epoch follows from its clock, which is above every epoch
-- that was counted from an earlier time.
local epoch = integer(math.max(before, floor, term.floor, elsewhere and now or 0) + 1)

present(KEYS[3], node, ARGV[4], 'leading', now)
if term.owner and term.ended ~= '1' then
  addEvent(KEYS[5], 'expired', term.node, integer(before), '', 'lease_ended', term.held_until)
end
redis.call('HSET', KEYS[2], 'epoch', epoch, 'owner', owner, 'node_id', node, 'since', integer(now),
  'ttl_ms', ttl, 'run_id', here.run_id, 'replid', here.replid, 'ended', '0', 'held_until', integer(now + tonumber(ttl)))
if term.quarantine or term.proof or t[9] then
  redis.call('HDEL', KEYS[2], 'quarantine_run', 'quarantine_since', 'proof', 'floor')
end
redis.call('HDEL', KEYS[4], 'reserved_for', 'reserved_until', 'deferred_until', 'stepdown_owner', 'stepdown_to', 'stepdown_reason', 'stepdown_code')
addEvent(KEYS[5], 'won', node, epoch, '')
take(owner, ttl)
-- In an unconfirmed incarnation the record of the last term may be old: only the quarantine is known to be without a leader. A leader
-- whose lease ran out has given no sign of life since its last renewal: that was one lease before.
local silent = term.ended ~= '1' and term.ttl or 0
local free = term.held_until and now - term.held_until + silent or 0
if elsewhere then
  free = since and now - since or 0
end
return {'won', '', 0, epoch, 0, integer(math.max(free, 0))}
