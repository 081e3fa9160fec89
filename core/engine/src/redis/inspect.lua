-- Inspect: the record as it is, the first of those who wait, and how many they are.
-- KEYS: all five.
local record, ids = call('HGETALL', key), call('ZRANGEBYSCORE', KEYS[3], '0', '+inf', 'LIMIT', '0', '256')
if #ids < 256 then
  local parked = call('ZREVRANGEBYSCORE', KEYS[3], '(0', '-inf', 'LIMIT', '0', 256 - #ids)
  for _, id in ipairs(parked) do ids[#ids + 1] = id end
end
local waiters = {}
for _, id in ipairs(ids) do
  local text = call('HGET', KEYS[2], id)
  if text then
    waiters[#waiters + 1] = id
    waiters[#waiters + 1] = text
  end
end
local holds
for i = 1, #record, 2 do
  if record[i] == 'v' and record[i + 1] == '2' then holds = call('HGETALL', KEYS[4]) end
end
return { now, record, waiters, call('ZCARD', KEYS[3]), holds }
