-- Functions shared by the scripts of a ledger.

-- clock is Redis' clock in ms.
local function clock()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end

-- pausedBy returns reason and end (ms) of the pause in the fields of a hash that is in force at that time; nil without one.
-- A pause that has ended is removed.
local function pausedBy(key, prefix, now)
  local reason, at, ends = prefix .. 'paused_reason', prefix .. 'paused_at', prefix .. 'paused_until'
  local found = redis.call('HMGET', key, reason, ends)
  if found[1] and found[2] and tonumber(found[2]) <= now then
    redis.call('HDEL', key, reason, at, ends)
    return nil
  end
  return found[1], found[2]
end

-- remember adds an entry to a history and trims it to a number of entries and to max_age in ms; "0": unlimited.
local function remember(stream, keep, max_age, now, ...)
  redis.call('XADD', stream, 'MAXLEN', keep, '*', ...)
  if max_age ~= '0' then
    redis.call('XTRIM', stream, 'MINID', string.format('%.0f', math.max(now - tonumber(max_age), 0)))
  end
end
