-- Reads a row whose slot is being moved to another node. It is one command, so that it can be sent to the other node after
-- ASKING.
-- KEYS: the row's hash
-- ARGV: the wanted fields
-- Reply: {1 if the row exists, its values}
local values = #ARGV > 0 and redis.call('HMGET', KEYS[1], unpack(ARGV)) or {}
return {redis.call('EXISTS', KEYS[1]), values}
