-- Records an operation of a job: what it is asked to be, how far it is, or how it ended.
-- KEYS: job hash, control, runs stream
-- ARGV: field of control, id of the operation, "ask", "report" or "end", epoch of the term, the order or the state as
--       JSON; for "ask" by schedule: the slot and the time of the order (ms); and for "end": "1" if it is the
--       job's last verification, number of entries to keep, max_age in ms (see remember), then field, value...
--       of the history
-- Reply: "ok"; "asked" if another operation of the job is not over; "gone" if this one is over, or a later term has it
--
-- The field holds the order for as long as it is not over: whoever leads goes on with it.
local field, id, verb, epoch, text = unpack(ARGV, 1, 5)
local order = redis.call('HGET', KEYS[2], field)
local open = order and cjson.decode(order).id
-- PERSIST writes first: then a full memory refuses no later command, and flushes can make room.
if verb == 'ask' then
  if ARGV[6] then -- an order by schedule covers each slot up to the time of the order, also if another operation stands in its way
    local covered = tonumber(redis.call('HGET', KEYS[1], 'verify_until') or '')
    local day = 86400000 -- a time that is further ahead is from a host with a wrong clock
    if covered and covered >= tonumber(ARGV[6]) and covered <= clock() + day then
      return 'ok'
    end
    redis.call('PERSIST', KEYS[1])
    redis.call('HSET', KEYS[1], 'verify_until', ARGV[7])
  end
  if open and open ~= id then
    return 'asked'
  end
  if open or redis.call('HGET', KEYS[1], 'operation_id') == id then
    return 'ok' -- the first reply was lost
  end
  redis.call('PERSIST', KEYS[2])
  redis.call('HSET', KEYS[2], field, text)
  return 'ok'
end
local known = redis.call('HGET', KEYS[1], 'operation_epoch')
if open ~= id or known and tonumber(known) > tonumber(epoch) and redis.call('HGET', KEYS[1], 'operation_id') == id then
  return 'gone'
end
redis.call('PERSIST', KEYS[1])
redis.call('HSET', KEYS[1], 'operation', text, 'operation_id', id, 'operation_epoch', epoch)
if verb == 'end' then
  redis.call('HDEL', KEYS[2], field)
  if ARGV[6] == '1' then
    redis.call('HSET', KEYS[1], 'verified', text)
  end
  remember(KEYS[3], ARGV[7], ARGV[8], clock(), unpack(ARGV, 9))
end
return 'ok'
