-- Acquire: the free lock that nobody waits for, granted at once to an ordinary owner; or a place
-- in the queue.
-- KEYS: record, queue. ARGV: hold, client, lease, not_after, floor, polling (0, 1);
--   ticket, claim, silence of a waiter; owner, attach; hold, used, flags of a release before.
local call, key, arg = redis.call, KEYS[1], ARGV
local time = call('TIME')
local now = time[1] * 1000000 + time[2]
if not arg[10] then
  local field = call('HMGET', key, 'v', 'i', 'n', 'e', 'r', 'b')
  local limit, last = arg[4] + 0, field[4]
  if field[1] == '1' and not field[2] and field[3] == '0' and last and field[5] ~= arg[1]
    and now <= limit and limit <= now + (arg[8] or 3000000) * 2 and now < 9006099743113216 then
    local first, floor = last + 1, arg[5] + 1
    if first < now then first = now end
    if first < floor then first = floor end
    last = first + 1023
    local deadline, digits = now + arg[3], string.format
    local ttl = (deadline > last and deadline or last) - now
    -- Formatting a large number here costs a third of what the server would take for it.
    call('HSET', key, 'i', arg[1], 'd', digits('%.0f', deadline), 'l', arg[3], 'f', arg[6],
      'c', arg[2], 't', digits('%.0f', first), 'e', digits('%.0f', last))
    call('PEXPIRE', key, digits('%d', ttl / 1000 + 86400000))
    return { now, 0, first, last, arg[3] + 0, field[6] + 0 }
  end
  -- Queued behind a holder, if all who wait are live, subscribed and of ordinary owners.
  if field[1] == '1' and field[2] and field[2] ~= arg[1] and field[3] and arg[7]
    and field[5] ~= arg[1] and now <= limit and limit <= now + arg[8] * 2
    and now < 9006099743113216 then
    local waiting, count = call('HGETALL', KEYS[2]), field[3] + 0
    local hold = call('HMGET', key, 'd', 'l', 'f', 'c', 't', 'k')
    local deadline, ticket = hold[1] + 0, arg[7] + 0
    if ticket == 0 then
      ticket = hold[6] + 1
      if ticket < now then ticket = now end
    end
    local head, plain = 1, #waiting == count * 2 and deadline > now and deadline <= now + hold[2]
      and hold[3] + 0 < 4
    for i = 1, #waiting, 2 do
      local before, heard, silence =
        string.match(waiting[i + 1], '^(%d+) (%d+) 0 %d+ %d+ (%d+)\n[^\n]*\n$')
      heard = heard and heard + 0
      if not heard or heard > now or now >= heard + silence or waiting[i] == arg[1] then
        plain = false
        break
      end
      before = before + 0
      if before < ticket or before == ticket and waiting[i] < arg[1] then head = 0 end
    end
    if plain then
      local digits, failed, k = string.format, 0, hold[6] + 0
      if k < ticket then k = ticket end
      call('HSET', key, 'k', digits('%.0f', k), 'n', count + 1)
      call('HSET', KEYS[2], arg[1], digits('%.0f %.0f %d %s %s %s\n%s\n', ticket, now,
        arg[6] + 0, arg[3], arg[8], arg[9], arg[2]))
      call('PEXPIRE', KEYS[2], digits('%d', (deadline - now) / 1000 + 86400000))
      -- A holder that polls has no inbox.
      if hold[3] % 2 == 0 then
        local prefix, name = string.match(key, '^([^{]*){(.*)}$')
        local heard = redis.pcall('PUBLISH', prefix .. 'inbox:' .. string.sub(hold[4], 1, 16),
          '1 wanted ' .. field[2] .. ' ' .. name)
        if type(heard) ~= 'number' then failed = 1 end
      end
      return { now, 1, hold[5] + 0, deadline - now, count, ticket, head, failed }
    end
  end
end
