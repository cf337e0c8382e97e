-- Counts the pending changes, including staged ones, without a scan.
-- KEYS: live, stage
-- ARGV: wanted type, another wanted type or ""
-- Reply: {"ok", count} or {"wrong_type", key, type}
local card = {hash = 'HLEN', set = 'SCARD', zset = 'ZCARD', list = 'LLEN'}
local count = 0
for _, key in ipairs(KEYS) do
  local found = redis.call('TYPE', key).ok
  if found == ARGV[1] or found == ARGV[2] then
    count = count + redis.call(card[found], key)
  elseif found ~= 'none' then
    return {'wrong_type', key, found}
  end
end
return {'ok', count}
