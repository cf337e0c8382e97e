-- Removes a stage and its id, if the stage still has that id.
-- KEYS: stage, meta
-- ARGV: id, how many records the stage may still have besides the passed ones (see stage_remove),
--       or -1 for any number
-- Reply: "discarded", "stale" (the stage has another id or no id) or "kept" (the stage still has records)
if redis.call('HGET', KEYS[2], 'id') ~= ARGV[1] then
  return 'stale'
end
local may = tonumber(ARGV[2])
if may >= 0 then
  local card = {set = 'SCARD', zset = 'ZCARD', list = 'LLEN'}
  local found = redis.call('TYPE', KEYS[1]).ok
  local left = found == 'none' and 0 or redis.call(card[found], KEYS[1])
  if left > may + tonumber(redis.call('HGET', KEYS[2], 'passed') or 0) then
    return 'kept'
  end
end
redis.call('UNLINK', KEYS[1], KEYS[2]) -- one command, so that both keys are removed, or none if Redis refuses it
return 'discarded'
