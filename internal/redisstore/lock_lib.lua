local function integer(n) return string.format('%.0f', n) end
-- The epoch that is written there, or nothing if it is none. Beyond 2^53 Lua cannot count: an epoch would stand still.
local function epochOf(text)
  local n = string.match(text or '', '^%d+$') and tonumber(text)
  return n and n < 2 ^ 53 and n or nil
end
local function clock()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end
-- Which incarnation of Redis this is. A server that hides INFO is an incarnation without a name.
local function incarnation()
  local info = redis.pcall('INFO', 'server')
  return type(info) == 'string' and string.match(info, 'run_id:(%w+)') or ''
end
-- A node tells of itself: presence is a JSON object, to which its state and the time are added.
local function present(nodes, node, presence, state, now)
  redis.call('HSET', nodes, node, string.sub(presence, 1, -2) .. ',"state":"' .. state .. '","seen_ms":' .. integer(now) .. '}')
end
-- A full memory refuses whatever needs some, until a script has written something: PERSIST, which changes nothing in a
-- key without an expiry, is the first. Else nobody could lead where only the leader's flushes make room.
local function beginWriting(key) redis.pcall('PERSIST', key) end
-- History is a courtesy: a user who may not write it is served all the same.
local function tell(events, event, node, epoch, reason)
  redis.pcall('XADD', events, 'MAXLEN', '~', 1000, '*', 'event', event, 'node_id', node or '', 'epoch', epoch or '', 'reason', reason)
end
