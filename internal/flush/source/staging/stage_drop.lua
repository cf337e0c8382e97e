-- Removes what is staged beside a key, whatever type of source has staged it, if the stage
-- still has that id.
-- KEYS: stage, meta, staged index
-- ARGV: id, or "" of a stage that has none
-- Reply: "dropped", or "changed": the id is another one by now
if (redis.call('HGET', KEYS[2], 'id') or '') ~= ARGV[1] then
  return 'changed'
end
redis.call('UNLINK', unpack(KEYS)) -- one command: all, or if it is refused none
return 'dropped'
