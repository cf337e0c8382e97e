-- Records the result of a run: in the history, and as the job's last result.
-- KEYS: job hash, runs stream
-- ARGV: entries to keep, their maximum age in ms (see remember), run id, state, finished in ms, reason to pause the
--       job or "", slot in ms, its retrial as "ATTEMPT AT" or "", "1" if it may count as a failure, then field, value...
--       of the run, of which the first two are its id and its state
-- Reply: 1, or 0 if it was recorded before (the first reply was lost)
--
-- A run that is not open was recorded before, or Redis has lost its data. A run recorded as lost is recorded again
-- when its leader reports its end after all; its retrial stays, or has been claimed.
local id, state, finished, pause, slot = ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7]
local open, last, latest, was, idle = unpack(redis.call('HMGET', KEYS[1], 'run:' .. id, 'last_slot', 'latest', 'result_id', 'idle'), 1, 5)
local lost
if not open then
  if state == 'lost' then
    return 0
  end
  for _, entry in ipairs(redis.call('XREVRANGE', KEYS[2], '+', '-', 'COUNT', 200)) do
    if entry[2][2] == id then
      if entry[2][4] ~= 'lost' then
        return 0
      end
      lost = entry[1]
      break
    end
  end
end
-- PERSIST writes first: then a full memory refuses no later command, and flushes can make room.
redis.call('PERSIST', KEYS[1])
local now = clock()
if lost then
  redis.call('XDEL', KEYS[2], lost)
end
unfold(KEYS[1], KEYS[2], ARGV[1], ARGV[2], now, idle)
remember(KEYS[2], ARGV[1], ARGV[2], now, unpack(ARGV, 10))
redis.call('HDEL', KEYS[1], 'run:' .. id, 'progress:' .. id)

if not lost and ARGV[8] ~= '' then
  -- A run of the last slot that is not open was recorded before, and the history does not have its entry any more. Its
  -- retrial may have been claimed, and must not be granted twice.
  local latest_slot = tonumber(last or '')
  if not latest_slot or latest_slot < tonumber(slot) or open and latest_slot == tonumber(slot) then
    redis.call('HSET', KEYS[1], 'retry', slot .. ' ' .. ARGV[8])
  end
end
if pause ~= '' and (latest or id) == id then
  -- A pause with an end set by an operator loses its end: an operator must act.
  local paused, ends = pausedBy(KEYS[1], '', now)
  if not paused then
    redis.call('HSET', KEYS[1], 'paused_reason', pause, 'paused_at', finished)
  elseif ends then
    redis.call('HDEL', KEYS[1], 'paused_until')
    redis.call('HSET', KEYS[1], 'paused_reason', pause)
  end
end

-- The last result is that of the run that was open last. A run that is recorded again was counted before.
local anew = lost and was == id
if not open and not anew then
  return 1
end
local set = {}
result(set, {unpack(ARGV, 10)})
redis.call('HSET', KEYS[1], unpack(set))
if state == 'cancelled' and anew then
  redis.call('HINCRBY', KEYS[1], 'consecutive_failures', -1)
elseif state ~= 'succeeded' and state ~= 'cancelled' and ARGV[9] == '1' and not anew then
  redis.call('HINCRBY', KEYS[1], 'consecutive_failures', 1)
end
return 1
