-- Removes the stage of a key, whatever type of source has made it, if the stage still has that id.
-- KEYS: stage, meta, staged index
-- ARGV: id, or "" for a stage without an id
-- Reply: "dropped", or "changed": the stage has another id now
if (redis.call('HGET', KEYS[2], 'id') or '') ~= ARGV[1] then
  return 'changed'
end
redis.call('UNLINK', unpack(KEYS)) -- one command, so that all keys are removed, or none if Redis refuses it
return 'dropped'
