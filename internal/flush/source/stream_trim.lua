-- Records the position up to which a job has read a stream, and trims entries that all jobs have read and that are old enough.
-- The entry at a job's position is kept. It shows the job later that no entry was trimmed before the job has read it.
-- KEYS: stream, positions
-- ARGV: job, its position, milliseconds for which entries stay or "" to trim nothing, maximum entries to trim, the maximum if
--       single entries are trimmed, and "" if the caller has found the entry at the position, which may be large
-- Reply: 1 if there may be more to trim, else 0
--
-- If the entry at the position does not exist, a failover may have lost it. Then entries before the position may be newer, and
-- unread. So nothing is trimmed, and the recorded position stays, because other jobs trim up to it. If the failover lost that,
-- too, the position before all entries is recorded. The job's next run reports the gap. A position without a number needs none
-- of this: a job begins there, or Redis does not count entries, and then a missing entry is always a gap.
-- If there are no entries before the position, some program has trimmed them, and the position is recorded. But if the stream's
-- last id is also before the position, the next entries may be, too.
--
-- Ids are compared as texts, because an id has two numbers of 64 bits, and Lua's numbers have fewer bits.
local function less(a, b)
  return #a < #b or #a == #b and a < b
end
local function before(a, b)
  local ams, aseq = string.match(a, '^(%d+)%-(%d+)')
  local bms, bseq = string.match(b, '^(%d+)%-(%d+)')
  if ams == bms then
    return less(aseq, bseq)
  end
  return less(ams, bms)
end

local at, more = string.match(ARGV[2], '^%d+%-%d+'), 0
local function any(from, to)
  return #redis.call('XRANGE', KEYS[1], from, to, 'COUNT', 1) > 0
end
local function last_is_before() -- of an empty stream, or of none
  local told = redis.pcall('XINFO', 'STREAM', KEYS[1])
  for i = 1, #told, 2 do
    if told[i] == 'last-generated-id' then
      return before(told[i + 1], at)
    end
  end
  return true
end
local function lost()
  return at ~= '0-0' and not any(at, at) and (any('-', at) or not any(at, '+') and last_is_before())
end
if ARGV[6] ~= '' and lost() then
  if not redis.call('HGET', KEYS[2], ARGV[1]) then
    redis.pcall('HSET', KEYS[2], ARGV[1], string.match(ARGV[2], ' 0$') and ARGV[2] or '0-0 0')
  end
  return 0
end

if ARGV[3] ~= '' then
  local upto = at
  local positions = redis.call('HGETALL', KEYS[2])
  for i = 1, #positions, 2 do
    local other = string.match(positions[i + 1], '^%d+%-%d+') or '0-0'
    if positions[i] ~= ARGV[1] and before(other, upto) then
      upto = other
    end
  end
  if ARGV[3] ~= '0' then
    local time = redis.call('TIME')
    local old = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000) - tonumber(ARGV[3])
    old = string.format('%.0f', math.max(old, 0)) .. '-0'
    if before(old, upto) then
      upto = old
    end
  end
  -- Whole nodes of the stream are trimmed first. The remaining entries are in a part of one node, which may have any length
  -- (stream-node-max-entries, stream-node-max-bytes).
  if upto == '0-0' then
    more = 0
  elseif redis.call('XTRIM', KEYS[1], 'MINID', '~', upto, 'LIMIT', ARGV[4]) > 0 then
    more = 1
  else
    local few = tonumber(ARGV[5])
    local left = redis.call('XRANGE', KEYS[1], '-', '(' .. upto, 'COUNT', few + 1)
    if #left > few then
      more, upto = 1, left[few + 1][1]
    end
    if #left > 0 then
      redis.call('XTRIM', KEYS[1], 'MINID', '=', upto)
    end
  end
end
-- The position is recorded last, and an error is ignored. Trimming needs no memory, and must work if the memory is full.
redis.pcall('HSET', KEYS[2], ARGV[1], ARGV[2])
return more
