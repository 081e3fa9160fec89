-- Release: the only hold of an ordinary owner, by a holder who was told and had not lost it. What
-- is left of the key's time is a day and more.
-- KEYS: record, queue. ARGV: hold, used, flags (1 told, 2 lost, 4 times the losses that it was
-- told of).
local call, key, arg = redis.call, KEYS[1], ARGV
local time = call('TIME')
local now = time[1] * 1000000 + time[2]
if arg[3] == '1' then
  local field = call('HMGET', key, 'i', 'n', 'f', 'd', 't', 'v')
  local flags = field[3]
  if field[1] == arg[1] and field[2] == '0' and (flags == '0' or flags == '1')
    and field[4] + 0 > now and field[6] == '1' and arg[2] + 0 >= field[5] + 0 then
    local last = arg[2]
    -- Removing a field is a first write that a full memory allows.
    call('HDEL', key, 'i')
    call('HSET', key, 'r', arg[1], 'e', last, 'b', '0')
    return { now, 0 }
  end
  -- Handed to the first of the waiters, if all of them are live, subscribed and of ordinary owners.
  if field[1] == arg[1] and field[2] and field[2] ~= '0' and (flags == '0' or flags == '1')
    and field[4] + 0 > now and field[6] == '1' and arg[2] + 0 >= field[5] + 0
    and now < 9006099743113216 then
    local waiting, count = call('HGETALL', KEYS[2]), field[2] + 0
    local at, first, id, lease, claim, client
    for i = 1, #waiting, 2 do
      local ticket, heard, l, c, silence, who =
        string.match(waiting[i + 1], '^(%d+) (%d+) 0 (%d+) (%d+) (%d+)\n([^\n]*)\n$')
      heard = heard and heard + 0
      if not heard or heard > now or now >= heard + silence then
        at = nil
        break
      end
      ticket = ticket + 0
      if i == 1 or ticket < first or ticket == first and waiting[i] < id then
        at, first, id, lease, claim, client = i, ticket, waiting[i], l + 0, c + 0, who
      end
    end
    if at and #waiting == count * 2 then
      local digits, token = string.format, arg[2] + 1
      if token < now then token = now end
      local last, span = token + 1023, claim < lease and claim or lease
      local ttl = (now + span > last and now + span or last) - now
      call('PEXPIRE', key, digits('%d', ttl / 1000 + 86400000))
      local prefix, name = string.match(key, '^([^{]*){(.*)}$')
      local heard = redis.pcall('PUBLISH', prefix .. 'inbox:' .. string.sub(client, 1, 16),
        digits('1 granted %s %.0f %.0f 0 %d %s', id, token, last, count - 1, name))
      if type(heard) == 'number' and heard > 0 then
        call('HSET', key, 'i', id, 'd', digits('%.0f', now + span), 'l', span, 'c', client,
          'f', '2', 't', digits('%.0f', token), 'e', digits('%.0f', last), 'r', arg[1],
          'b', '0', 'n', count - 1)
        call('HDEL', KEYS[2], id)
        return { now, 0 }
      end
    end
  end
end
