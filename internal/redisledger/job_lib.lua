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

-- pauseOf returns reason and end (ms) of the pause that these fields of a hash describe, if it is in force at that time;
-- nil without one. A pause that has ended is removed.
local function pauseOf(key, prefix, now, reason, ends, at)
  if reason and ends and tonumber(ends) <= now then
    endPause(key, prefix, at or '0', ends)
    return nil
  end
  return reason, ends
end

-- pausedBy reads these fields.
local function pausedBy(key, prefix, now)
  local found = redis.call('HMGET', key, prefix .. 'paused_reason', prefix .. 'paused_until', prefix .. 'paused_at')
  return pauseOf(key, prefix, now, found[1], found[2], found[3])
end

-- remember adds an entry to a history and trims it to a number of entries and to max_age in ms; "0": unlimited.
local function remember(stream, keep, max_age, now, ...)
  redis.call('XADD', stream, 'MAXLEN', keep, '*', ...)
  if max_age ~= '0' then
    redis.call('XTRIM', stream, 'MINID', string.format('%.0f', math.max(now - tonumber(max_age), 0)))
  end
end

local function push(list, ...)
  for _, value in ipairs({...}) do
    list[#list + 1] = value
  end
end

-- named has the values of a list of field, value... by their fields.
local function named(list)
  local by = {}
  for i = 1, #list, 2 do
    by[list[i]] = list[i + 1]
  end
  return by
end

-- result adds to what is set of a job's hash that a run, field, value..., is its last one to have ended. Of its output that
-- is the last line that says anything.
local function result(set, record)
  for i = 1, #record, 2 do
    local value = record[i + 1]
    if record[i] == 'output' then
      local last = ''
      for line in string.gmatch(string.sub(value, -512), '[^\n]+') do
        last = string.find(line, '%S') and line or last
      end
      value = last
    end
    push(set, 'result_' .. record[i], value)
  end
  local run = named(record)
  if run.state == 'succeeded' then
    push(set, 'last_success', run.finished, 'fresh', run.started, 'consecutive_failures', '0')
  end
end

-- Runs that found nothing to do are folded: those that follow one another are one entry of the history, that of the last
-- of them under the id of the first, with "first", the slot of the first, "count", how many they are, and "last", the id
-- of the last. While more may come it is in the field "idle" of the job's hash, as a list in JSON that ends with "at", when
-- that was, and in the history as soon as anything else is, another term has begun, or it is an hour long.

-- unfold adds that entry to the history, if there is one.
local function unfold(job, stream, keep, max_age, now, idle)
  if idle then
    local entry = cjson.decode(idle)
    remember(stream, keep, max_age, now, unpack(entry, 1, #entry - 2))
    redis.call('HDEL', job, 'idle')
  end
end

-- joins reports whether a run belongs to the entry of those before it; last is the slot before its own.
local function joins(idle, run, last)
  return idle.slot and idle.slot == last and idle.owner == run.owner and idle.trigger == run.trigger
    and tonumber(run.slot) - tonumber(idle.first) < 3600000
end
