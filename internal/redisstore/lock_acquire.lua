-- Takes the lock if it is free and may be taken, and gives its term an epoch above every earlier one.
-- KEYS: lock, term, nodes, control, events, quarantine
-- ARGV: owner, ttl in ms, node id, presence (a JSON object), epoch floor, priority, "1" for an observer
-- Reply: {"won", "", 0, epoch}, {"held", holder's node id or "", ms left or -1, its epoch or ""} or
--        {"wait", why, ms left or -1, last epoch or ""}; error EPOCH if the epoch cannot rise
--
-- Asked again by the owner that holds the lock it renews and answers the same epoch.
-- The lock itself is written last: an error before that has taken nothing.
local owner, ttl, node, floor, priority = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[5]), tonumber(ARGV[6])
local now = clock()
local holder = holder()
local t = redis.call('HMGET', KEYS[2], 'epoch', 'owner', 'node_id', 'ended', 'run_id', 'ttl_ms', 'quarantine_run')
local term = {epoch = t[1], owner = t[2], node = t[3], ended = t[4], run_id = t[5], ttl = t[6], quarantine = t[7]}
local run_id = incarnation()
-- Nobody has won or renewed in this incarnation of Redis: it has restarted, failed over or lost its data, and a leader
-- that it does not know may still trust its lease. Where nobody knows of an earlier term there is no such leader.
local unconfirmed = term.run_id ~= run_id and (term.epoch or term.quarantine or floor > 0)

-- Returns how long no new owner may win. It begins once an incarnation, and survives its end in the term.
local function quarantine()
  if not unconfirmed then
    return 0
  end
  if term.quarantine == run_id then
    return math.max(redis.call('PTTL', KEYS[6]), 0)
  end
  local lease = math.max(tonumber(ttl), tonumber(term.ttl) or 0)
  redis.call('HSET', KEYS[2], 'quarantine_run', run_id)
  redis.call('SET', KEYS[6], run_id, 'PX', integer(lease))
  tell(KEYS[5], 'quarantined', node, term.epoch, 'redis has restarted, failed over or lost its data; a former leader may trust its lease for ' .. integer(lease) .. ' ms')
  return lease
end

if priority > 0 and ARGV[7] ~= '1' then
  redis.call('HSET', KEYS[4], 'priority:' .. node, ARGV[6] .. ' ' .. integer(now))
end

if holder and holder ~= owner then
  quarantine() -- runs beside the lease
  present(KEYS[3], node, ARGV[4], 'standby', now)
  local ours = term.owner == holder
  return {'held', ours and term.node or '', redis.call('PTTL', KEYS[1]), ours and term.epoch or ''}
end
if holder and term.owner == holder then
  present(KEYS[3], node, ARGV[4], 'leading', now)
  redis.call('PEXPIRE', KEYS[1], ttl)
  return {'won', '', 0, term.epoch}
end

-- Beyond 2^53 Lua cannot count: the epoch would stand still.
local before = tonumber(term.epoch or 0)
if not (before and before >= 0 and math.max(before, floor) + 1 < 2 ^ 53) then
  return redis.error_reply('EPOCH ' .. string.sub(term.epoch or '', 1, 30) .. ' in ' .. KEYS[2] .. ', or the floor ' .. ARGV[5] .. ', cannot be counted on from')
end

local left = quarantine()
local control, others = {}, redis.call('HGETALL', KEYS[4])
for i = 1, #others, 2 do
  control[others[i]] = others[i + 1]
end
local function wait(why, ms)
  present(KEYS[3], node, ARGV[4], 'standby', now)
  return {'wait', why, ms, term.epoch or ''}
end
if not holder then
  if control.paused_at then
    return wait('paused ' .. (control.paused_reason or ''), -1)
  end
  if left > 0 then
    return wait('in quarantine, since redis has restarted, failed over or lost its data', left)
  end
  if ARGV[7] == '1' then
    return wait('left to others: this node is no candidate', -1)
  end
  local reserved = (tonumber(control.reserved_until) or 0) - now
  if control.reserved_for and control.reserved_for ~= node and reserved > 0 then
    return wait('reserved for ' .. control.reserved_for, reserved)
  end
  -- A live node of a higher priority goes first, but is not waited for long: it may be dead. The last leader is: it
  -- would lead if it could, or has just given the lead up.
  local first, highest = nil, priority
  for name, value in pairs(control) do
    local other = string.match(name, '^priority:(.*)$')
    local rank, seen = string.match(value, '^(%d+) (%d+)$')
    if other and rank and tonumber(rank) > highest and other ~= node and other ~= term.node and now - tonumber(seen) < 45000 then
      first, highest = other, tonumber(rank)
    end
  end
  if first and not (control.reserved_for == node and reserved > 0) then
    local deferred = tonumber(control.deferred_until) or now + 500
    redis.call('HSET', KEYS[4], 'deferred_until', integer(deferred))
    if deferred > now then
      return wait('left to ' .. first .. ', which has priority ' .. integer(highest), deferred - now)
    end
  end
end

-- An incarnation that has confirmed nothing may have forgotten epochs. It goes on from its clock, which is beyond what
-- can have been counted from an earlier one.
local epoch = integer(math.max(before, floor, term.run_id ~= run_id and now or 0) + 1)

present(KEYS[3], node, ARGV[4], 'leading', now)
if term.owner and term.ended ~= '1' then
  tell(KEYS[5], 'expired', term.node, term.epoch, 'its lease ran out')
end
redis.call('HSET', KEYS[2], 'epoch', epoch, 'owner', owner, 'node_id', node, 'since', integer(now),
  'ttl_ms', ttl, 'run_id', run_id, 'ended', '0')
redis.call('HDEL', KEYS[2], 'quarantine_run')
redis.call('HDEL', KEYS[4], 'reserved_for', 'reserved_until', 'deferred_until', 'stepdown_owner', 'stepdown_to', 'stepdown_reason')
tell(KEYS[5], 'won', node, epoch, '')
take(owner, ttl)
return {'won', '', 0, epoch}
