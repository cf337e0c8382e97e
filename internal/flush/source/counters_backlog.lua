-- Counts the pending changes, including staged ones, without a scan.
-- KEYS: live index, staged index, stage
-- Reply: {"ok", count} or {"wrong_type", key, type}
local card = {hash = 'HLEN', set = 'SCARD', zset = 'ZCARD'}
local count = 0
for i, key in ipairs(KEYS) do
  local found = redis.call('TYPE', key).ok
  if i <= 2 and (found == 'set' or found == 'zset') or i == 3 and found == 'hash' then
    count = count + redis.call(card[found], key)
  elseif found ~= 'none' then
    return {'wrong_type', key, found}
  end
end
return {'ok', count}
