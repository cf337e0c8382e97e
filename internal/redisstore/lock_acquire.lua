-- Takes the lock if it is free, and gives its term an epoch above every earlier one.
-- KEYS: lock, term, nodes, control, events
-- ARGV: owner, ttl in ms, node id, presence (a JSON object), epoch floor
-- Reply: {"won", epoch, 0}, {"held", holder's node id or "", ms left or -1} or {"reserved", for node id, ms left}; error EPOCH if
-- the epoch cannot rise
--
-- Asked again by the owner that holds the lock it renews and answers the same epoch.
-- The lock itself is written last: an error before that has taken nothing.
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local function integer(n) return string.format('%.0f', n) end

local holder = redis.call('GET', KEYS[1])
local term = redis.call('HMGET', KEYS[2], 'epoch', 'owner', 'node_id', 'ended')
local function present(state)
  redis.call('HSET', KEYS[3], ARGV[3],
    string.sub(ARGV[4], 1, -2) .. ',"state":"' .. state .. '","seen_ms":' .. integer(now) .. '}')
end

if holder and holder ~= ARGV[1] then
  present('standby')
  return {'held', term[2] == holder and term[3] or '', redis.call('PTTL', KEYS[1])}
end
if holder and term[2] == holder then
  present('leading')
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return {'won', term[1], 0}
end

local reserved = redis.call('HMGET', KEYS[4], 'reserved_for', 'reserved_until')
if not holder and reserved[1] and reserved[1] ~= ARGV[3] and tonumber(reserved[2]) > now then
  present('standby')
  return {'reserved', reserved[1], tonumber(reserved[2]) - now}
end

-- An empty store starts at its wall clock, which is beyond what it can have counted to before it lost its data.
local before = tonumber(term[1] or now)
local epoch = before and math.max(before, tonumber(ARGV[5])) + 1
-- Beyond 2^53 Lua cannot count: the epoch would stand still.
if not epoch or not (before >= 0 and epoch < 2 ^ 53) then
  return redis.error_reply('EPOCH ' .. string.sub(term[1] or '', 1, 30) .. ' in ' .. KEYS[2] .. ', or the floor ' .. ARGV[5] .. ', cannot be counted on from')
end
epoch = integer(epoch)
-- Which incarnation of Redis wrote this. A server that hides INFO is an incarnation without a name.
local info = redis.pcall('INFO', 'server')
local run_id = type(info) == 'string' and string.match(info, 'run_id:(%w+)') or ''

present('leading')
if term[1] and term[4] ~= '1' then
  redis.pcall('XADD', KEYS[5], 'MAXLEN', '~', 1000, '*', 'event', 'expired', 'node_id', term[3] or '',
    'epoch', term[1], 'reason', 'its lease ran out')
end
redis.call('HSET', KEYS[2], 'epoch', epoch, 'owner', ARGV[1], 'node_id', ARGV[3], 'since', integer(now),
  'ttl_ms', ARGV[2], 'run_id', run_id, 'ended', '0')
redis.call('HDEL', KEYS[4], 'reserved_for', 'reserved_until', 'stepdown_owner', 'stepdown_to', 'stepdown_reason')
redis.pcall('XADD', KEYS[5], 'MAXLEN', '~', 1000, '*', 'event', 'won', 'node_id', ARGV[3], 'epoch', epoch, 'reason', '')
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return {'won', epoch, 0}
