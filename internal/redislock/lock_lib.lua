local function integer(n) return string.format('%.0f', n) end
-- The epoch in a text, or nil if the text is none. Above 2^53 Lua cannot count: an epoch would not rise.
local function epochOf(text)
  local n = string.match(text or '', '^%d+$') and tonumber(text)
  return n and n < 2 ^ 53 and n or nil
end
-- 30 days in ms. Epochs start from a clock: one that is this far above the clock and every known epoch is a forgery or a
-- fault. The next terms would carry it into the databases, and it could reach 2^53.
local farAhead = 2592000000
local function plausible(epoch, known, now) return epoch <= math.max(known, now) + farAhead end
local function clock()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end
-- The incarnation of Redis: its process, and its data, which that of another server may replace without a restart of
-- the process. A server that hides INFO is an incarnation without a name.
local function incarnation()
  local server, replication = redis.pcall('INFO', 'server'), redis.pcall('INFO', 'replication')
  local run_id = type(server) == 'string' and string.match(server, 'run_id:(%w+)') or ''
  local replid = type(replication) == 'string' and string.match(replication, 'master_replid:(%w+)') or ''
  return {run_id = run_id, replid = replid, name = replid == '' and run_id or run_id .. '/' .. replid}
end
-- Terms of older versions have no replid.
local function confirmed(run_id, replid, now)
  return run_id == now.run_id and (not replid or replid == '' or now.replid == '' or replid == now.replid)
end
-- Writes a node's heartbeat: presence is a JSON object, to which state and time are added.
local function present(nodes, node, presence, state, now)
  redis.call('HSET', nodes, node, string.sub(presence, 1, -2) .. ',"state":"' .. state .. '","seen_ms":' .. integer(now) .. '}')
end
-- At maxmemory Redis refuses commands that need memory, until a script has written: PERSIST, which changes nothing in a
-- key without an expiry, is that write. Else no node could lead where only the leader's flushes free memory.
local function beginWriting(key) redis.pcall('PERSIST', key) end
-- The history is optional: a Redis user that may not write it can still lead.
-- over is when the term's lease had ended, where another node writes the event, maybe long after.
local function addEvent(events, event, node, epoch, reason, code, over)
  local fields = {'event', event, 'node_id', node or '', 'epoch', epoch or '', 'reason', reason, 'code', code or ''}
  if over then
    fields[#fields + 1], fields[#fields + 2] = 'over_ms', integer(over)
  end
  redis.pcall('XADD', events, 'MAXLEN', '~', 1000, '*', unpack(fields))
end
