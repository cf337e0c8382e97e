-- Reads the latest entries of the histories of many jobs, each without what is long.
-- KEYS: for each job its hash and its runs stream
-- ARGV: entries of a job at most, bytes of the newest entry's output at most, then for each job the id of the
--       newest entry that is known, or ""
-- Reply: for each job the entry that idle runs may still join (see job_lib.lua) or "", then its entries, the newest first:
--        each its id, then field, value...; the newest has the end of its output
local most, tail = tonumber(ARGV[1]), tonumber(ARGV[2])
local short = {id = true, state = true, slot = true, started = true, finished = true, rows = true, dead = true,
  exit_code = true, count = true, first = true, reason = true, trigger = true, node = true}
local reply = {}
for n = 1, #KEYS / 2 do
  local known = ARGV[2 + n]
  local all = {redis.call('HGET', KEYS[2 * n - 1], 'idle') or ''}
  local from = known == '' and '-' or '(' .. known
  for i, entry in ipairs(redis.call('XREVRANGE', KEYS[2 * n], '+', from, 'COUNT', most)) do
    local fields = {entry[1]}
    for k = 1, #entry[2], 2 do
      local name, value = entry[2][k], entry[2][k + 1]
      if short[name] then
        fields[#fields + 1], fields[#fields + 2] = name, value
      elseif i == 1 and name == 'output' then
        fields[#fields + 1], fields[#fields + 2] = name, string.sub(value, -tail)
      end
    end
    all[#all + 1] = fields
  end
  reply[n] = all
end
return reply
