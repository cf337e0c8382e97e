-- Looks at a stream from a position, and records the job's position if none is recorded yet. If the entry at the position is
-- missing, a failover may have lost it, and the position before all entries is recorded: see stream_trim.lua.
-- KEYS: stream, positions
-- ARGV: job, id of the position or "" for the recorded position, position to record or ""
-- Reply: {type, length, last generated id, entries ever added or -1, highest deleted id or "", first id or "",
--         id of the position if that entry exists or "", first id after it or "", recorded position or ""}
local found = redis.call('TYPE', KEYS[1]).ok
local noted = redis.call('HGET', KEYS[2], ARGV[1]) or ''
local function note(sound)
  if ARGV[3] ~= '' and noted == '' then
    -- An error is ignored, because a user without this permission may still look.
    redis.pcall('HSET', KEYS[2], ARGV[1], (sound or string.match(ARGV[3], ' 0$')) and ARGV[3] or '0-0 0')
  end
end
if found ~= 'stream' then
  note(false)
  return {found, 0, '0-0', -1, '', '', '', '', noted}
end
local told, info = redis.call('XINFO', 'STREAM', KEYS[1]), {}
for i = 1, #told, 2 do
  info[told[i]] = told[i + 1]
end
local function id(entries, n) return entries[n] and entries[n][1] or '' end
local last = info['last-generated-id']
if not last then -- the server only imitates Redis
  last = id(redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1), 1)
end
-- As few entries as possible are read, because entries may be large, and Lua copies each of them a few times.
local first, newest = info['first-entry'], info['last-entry']
if newest == nil then -- the server only imitates Redis
  first = redis.call('XRANGE', KEYS[1], '-', '+', 'COUNT', 1)[1]
end
local position = ARGV[2] ~= '' and ARGV[2] or string.match(noted, '^%d+%-%d+') or '0-0'
local anchor, behind = '', ''
if newest and newest[1] == position then
  anchor = position
elseif position == '0-0' then
  behind = first and first[1] or ''
elseif first and first[1] == position and info['entries-added'] then -- such a Redis supports exclusive ranges
  anchor, behind = position, id(redis.call('XRANGE', KEYS[1], '(' .. position, '+', 'COUNT', 1), 1)
else
  local at = redis.call('XRANGE', KEYS[1], position, '+', 'COUNT', 2)
  behind = id(at, 1)
  if behind == position then
    anchor, behind = position, id(at, 2)
  end
end
note(anchor ~= '' or last == position)
return {found, info.length, last ~= '' and last or '0-0', info['entries-added'] or -1, info['max-deleted-entry-id'] or '',
  first and first[1] or '', anchor, behind, noted}
