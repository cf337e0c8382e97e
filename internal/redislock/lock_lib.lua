local function integer(n) return string.format('%.0f', n) end
-- The epoch that is written there, or nothing if it is none. Beyond 2^53 Lua cannot count: an epoch would stand still.
local function epochOf(text)
  local n = string.match(text or '', '^%d+$') and tonumber(text)
  return n and n < 2 ^ 53 and n or nil
end
-- 30 days in ms. Epochs are counted from a clock: one that is as far above it, and above all that is known, is a forgery or a
-- fault. Counting on from it would carry it into the databases, and end at 2^53.
local farAhead = 2592000000
local function plausible(epoch, known, now) return epoch <= math.max(known, now) + farAhead end
local function clock()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end
-- Which incarnation of Redis this is: of the process, and of the data in it, which another server's may replace beneath
-- the process. A server that hides INFO is an incarnation without a name.
local function incarnation()
  local server, replication = redis.pcall('INFO', 'server'), redis.pcall('INFO', 'replication')
  local run_id = type(server) == 'string' and string.match(server, 'run_id:(%w+)') or ''
  local replid = type(replication) == 'string' and string.match(replication, 'master_replid:(%w+)') or ''
  return {run_id = run_id, replid = replid, name = replid == '' and run_id or run_id .. '/' .. replid}
end
-- A term that older versions have written tells no replid.
local function confirmed(run_id, replid, now)
  return run_id == now.run_id and (not replid or replid == '' or now.replid == '' or replid == now.replid)
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
