-- Functions shared by the scripts of a ledger.

-- clock is Redis' clock in ms.
local function clock()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end

-- endPause removes a pause, and keeps its first and last moment: slots inside it are not owed.
local function endPause(key, prefix, at, ended)
  redis.call('HDEL', key, prefix .. 'paused_reason', prefix .. 'paused_at', prefix .. 'paused_until')
  redis.call('HSET', key, prefix .. 'pause_began', at, prefix .. 'pause_ended', ended)
end

-- pausedBy returns reason and end (ms) of the pause in the fields of a hash that is in force at that time; nil without one.
-- A pause that has ended is removed.
local function pausedBy(key, prefix, now)
  local found = redis.call('HMGET', key, prefix .. 'paused_reason', prefix .. 'paused_until', prefix .. 'paused_at')
  if found[1] and found[2] and tonumber(found[2]) <= now then
    endPause(key, prefix, found[3] or '0', found[2])
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
