-- Notes up to where a job has read a stream, and trims what all jobs have read and is old enough. An entry that a job is
-- at stays: by it the job will know that nothing was trimmed too early.
-- KEYS: stream, positions
-- ARGV: job, its position, ms that entries are to stay or "" to trim nothing, entries and bytes at most
-- Reply: how many were trimmed
--
-- Ids have 64 bits twice, more than Lua's numbers: they are compared as texts.
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

-- To free a large entry takes long. How many fit into so many bytes the first one tells: a large entry has a node of its
-- own, of small ones the limit must be no fewer than a node has.
local function at_most(entries, bytes)
  local first = redis.call('XRANGE', KEYS[1], '-', '+', 'COUNT', 1)[1]
  local size = 1
  for _, text in ipairs(first and first[2] or {}) do
    size = size + #text
  end
  return math.max(size > 4096 and 1 or 100, math.min(entries, math.floor(bytes / size)))
end

local trimmed = 0
if ARGV[3] ~= '' then
  local upto = string.match(ARGV[2], '^%d+%-%d+')
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
  trimmed = redis.call('XTRIM', KEYS[1], 'MINID', '~', upto, 'LIMIT',
    at_most(tonumber(ARGV[4]), tonumber(ARGV[5])))
  if trimmed == 0 then -- whole nodes of the stream are off; what is left is part of one
    redis.call('XTRIM', KEYS[1], 'MINID', '=', upto)
  end
end
-- It comes last: trimming needs no memory, and must go on when there is none. It is a courtesy.
redis.pcall('HSET', KEYS[2], ARGV[1], ARGV[2])
return trimmed
