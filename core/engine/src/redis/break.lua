
-- Break: ends the holds of the tenure that is named, and of none after it. KEYS: all five.
-- ARGV: token, hold or nothing.
local s, refused = load(1, false, KEYS[5])
if not s then return { err = refused } end
tick(s)
local broken, later, lost = {}, 0, false
for _, hold in ipairs(all_holds(s)) do
  local token = hold.mode == '' and s.token or hold.token
  if token > arg[1] + 0 then
    later = math.max(later, token)
  elseif not arg[2] or arg[2] == hold.id then
    broken[#broken + 1] = hold
    lost = lost or hold.mode == ''
  end
end
for _, hold in ipairs(broken) do
  local _, at = hold_of(s, hold.id)
  end_hold(s, hold, at)
end
if #broken > 0 then later = 0 end
if lost then lose(s, YES) end
for _, hold in ipairs(broken) do
  if not hold.polling then publish(s, hold.client, '1 broken ' .. hold.id) end
end
settle(s, nil, 0)
save(s)
return { now, #broken, later }
