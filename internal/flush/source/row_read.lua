-- Reads a row whose slot is on its way to another node: one command, so that it can be sent after it.
-- KEYS: the row's hash
-- ARGV: the fields that are wanted
-- Reply: {1 if the row exists, its values}
local values = #ARGV > 0 and redis.call('HMGET', KEYS[1], unpack(ARGV)) or {}
return {redis.call('EXISTS', KEYS[1]), values}
