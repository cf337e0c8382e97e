-- Removes a stage and its id, if it still has that id.
-- KEYS: stage, meta
-- ARGV: id, "whole" or "drained": a drained stage goes only when nothing is left in it
-- Reply: "discarded", "stale" (the id is another one, or gone) or "kept" (something is left)
if redis.call('HGET', KEYS[2], 'id') ~= ARGV[1] then
  return 'stale'
end
if ARGV[2] ~= 'whole' and redis.call('EXISTS', KEYS[1]) == 1 then
  return 'kept'
end
redis.call('UNLINK', KEYS[1], KEYS[2]) -- one command: both, or if it is refused none
return 'discarded'
