-- Release: the only hold of an ordinary owner, with nobody waiting, by a holder who was told and
-- had not lost it. What is left of the key's time is a day and more.
-- KEYS: record, queue. ARGV: hold, used, flags (1 told, 2 lost).
local call, key, arg = redis.call, KEYS[1], ARGV
local time = call('TIME')
local now = time[1] * 1000000 + time[2]
if arg[3] == '1' then
  local field = call('HMGET', key, 'i', 'n', 'f', 'd', 't', 'v')
  local flags = field[3]
  if field[1] == arg[1] and field[2] == '0' and (flags == '4' or flags == '5')
    and field[4] + 0 > now and field[6] == '1' then
    local last = field[5]
    if arg[2] + 0 > last + 0 then last = arg[2] end
    -- Removing a field is a first write that a full memory allows.
    call('HDEL', key, 'i')
    call('HSET', key, 'r', arg[1], 'e', last, 'b', '0')
    return { now, 0 }
  end
end
