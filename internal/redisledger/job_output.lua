-- Appends to the output of a run and keeps its end.
-- KEYS: the output, the job's runs with an output (score: time of the last output, in ms)
-- ARGV: run id, offset of the text in the whole output, text, bytes to keep, runs to keep,
--       life in ms, now in ms
-- Reply: ids of runs whose outputs are to be deleted
--
-- The output begins with the offset of its first byte, in 16 digits. Bytes that are
-- there already are not appended again; after a gap everything before it is dropped.
local head, at, text, keep = 16, tonumber(ARGV[2]), ARGV[3], tonumber(ARGV[4])
local first = tonumber(redis.call('GETRANGE', KEYS[1], 0, head - 1))
local next = first and first + redis.call('STRLEN', KEYS[1]) - head
if not first or next < at then
  redis.call('SET', KEYS[1], string.format('%016d', at) .. text)
elseif next < at + #text then
  redis.call('APPEND', KEYS[1], string.sub(text, next - at + 1))
end
local much = redis.call('STRLEN', KEYS[1]) - head
if much > keep + keep / 4 then -- not every time: trimming copies the text
  first = tonumber(redis.call('GETRANGE', KEYS[1], 0, head - 1)) + much - keep
  redis.call('SET', KEYS[1], string.format('%016d', first) .. redis.call('GETRANGE', KEYS[1], head + much - keep, -1))
end
redis.call('ZADD', KEYS[2], ARGV[7], ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[6])
redis.call('PEXPIRE', KEYS[2], ARGV[6])
local old = redis.call('ZRANGE', KEYS[2], 0, -1 - tonumber(ARGV[5]))
redis.call('ZREMRANGEBYRANK', KEYS[2], 0, -1 - tonumber(ARGV[5]))
return old
