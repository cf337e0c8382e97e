-- The lock is in this store; its owner leads. KEYS[1] is the lock.
local function instead(owner)
  local found = holder()
  if found ~= owner then
    return found or ''
  end
end
