-- Extends the lease and uses the lock key only: while a Cluster moves the election's keys to another node one by one,
-- a script that names more than one of them is refused.
-- KEYS: lock
-- ARGV: owner, ttl in ms
-- Reply: who holds the lock, or ""
local holder = holder()
if holder == ARGV[1] then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return holder or ''
