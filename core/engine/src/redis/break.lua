
-- Break: ends the holds of the tenure that is named, and of none after it. KEYS: record, queue, order.
-- ARGV: token, hold or nothing.
local s, refused = load(1, false)
if not s then return { err = refused } end
tick(s)
local broken, kept, later = {}, {}, 0
if #s.holds > 0 and s.token > arg[1] + 0 then
  kept, later = s.holds, s.token
else
  for _, hold in ipairs(s.holds) do
    local list = (not arg[2] or arg[2] == hold.id) and broken or kept
    list[#list + 1] = hold
  end
end
s.holds = kept
if #broken > 0 then lose(s, YES) end
for _, hold in ipairs(broken) do
  if not hold.polling then publish(s, hold.client, '1 broken ' .. hold.id) end
end
settle(s, nil, 0)
save(s)
return { now, #broken, later }
