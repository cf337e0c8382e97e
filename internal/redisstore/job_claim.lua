-- Claims a slot of a job: only for the lock's owner, and only a later slot than the last.
-- KEYS: lock, job hash
-- ARGV: owner, slot in ms, now in ms, run id, node id, epoch, trigger, attempt
-- Reply: {"ok"}, {"not_leader", owner found or ""} or {"taken", last slot in ms}
--
-- A claim asked again by the very run that holds it answers ok: its first reply was lost.
local found = redis.call('GET', KEYS[1])
if found ~= ARGV[1] then
  return {'not_leader', found or ''}
end
local job = redis.call('HMGET', KEYS[2], 'last_slot', 'running_id')
if job[1] and tonumber(job[1]) >= tonumber(ARGV[2]) then
  if job[1] == ARGV[2] and job[2] == ARGV[4] then
    return {'ok'}
  end
  return {'taken', job[1]}
end
redis.call('HSET', KEYS[2], 'last_slot', ARGV[2], 'running_started', ARGV[3], 'running_id', ARGV[4],
  'running_node', ARGV[5], 'running_owner', ARGV[1], 'running_epoch', ARGV[6],
  'running_trigger', ARGV[7], 'running_attempt', ARGV[8])
return {'ok'}
