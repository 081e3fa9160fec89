-- Beat: the holds of ordinary owners that nobody waits for, renewed one by one; the others are
-- left to the part below. One that cannot be read costs only itself.
-- KEYS: record and queue of each. ARGV: client, polling (0, 1); then hold, lease, used of each.
local call, try, arg, digits = redis.call, redis.pcall, ARGV, string.format
local time = call('TIME')
local now = time[1] * 1000000 + time[2]
if now >= 9006099743113216 then return { err = 'CLOCK' } end
local polling = arg[2] + 0
local answers, left = { now }, nil
for i = 1, #KEYS / 2 do
  local key, at = KEYS[i * 2 - 1], i * 3
  local field = try('HMGET', key, 'v', 'i', 'n', 'f', 'd', 'l', 'e', 't', 'b')
  if field.err then
    answers[i + 1] = field.err
  elseif field[1] == '1' and field[2] == arg[at] and field[3] == '0' and field[4] + 0 < 4
    and field[5] + 0 > now then
    local deadline, lease, last = field[5] + 0, arg[at + 1] + 0, field[7] + 0
    if deadline > now + field[6] then deadline = now + field[6] end
    if deadline < now + lease then deadline = now + lease end
    if last < now then last = now end
    if last < arg[at + 2] + 1024 then last = arg[at + 2] + 1024 end
    lease = deadline - now
    local ttl = (deadline > last and deadline or last) - now
    local kept = try('PEXPIRE', key, digits('%d', ttl / 1000 + 86400000))
    if type(kept) == 'table' then
      answers[i + 1] = kept.err
    else
      call('HSET', key, 'd', digits('%.0f', deadline), 'l', digits('%.0f', lease),
        'e', digits('%.0f', last), 'f', polling)
      answers[i + 1] = { 0, field[8] + 0, last, lease, field[9] + 0 }
    end
  else
    left = left or {}
    left[#left + 1] = i
    answers[i + 1] = ''
  end
end
if not left then return answers end
