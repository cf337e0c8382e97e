-- Reads the kept output of a run.
-- KEYS: the output
-- ARGV: offset to read from, bytes at most
-- Reply: offset of the text, text; the requested offset and '' at the end
local head, from = 16, tonumber(ARGV[1])
local first = tonumber(redis.call('GETRANGE', KEYS[1], 0, head - 1))
if not first then
  return {ARGV[1], ''}
end
if from < first then
  from = first
end
return {string.format('%d', from), redis.call('GETRANGE', KEYS[1], head + from - first, head + from - first + ARGV[2] - 1)}
