
-- Break: ends every hold, whoever has it. KEYS: record, queue.
local s, refused = load(KEYS[1], KEYS[2], false)
if not s then return { err = refused } end
tick(s)
local broken = s.holds
s.holds = {}
if #broken > 0 then lose(s, YES) end
for _, hold in ipairs(broken) do
  if not hold.polling then publish(s, hold.client, '1 broken ' .. hold.id) end
end
settle(s, nil, 0)
save(s)
return { now, #broken }
