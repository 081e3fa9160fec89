-- Acquire: the free lock that nobody waits for, granted at once to an ordinary owner.
-- KEYS: record, queue, order. ARGV: hold, client, lease, not_after, floor, polling (0, 1);
--   ticket, claim, silence of a waiter; owner, attach; hold, used, flags of a release before.
local field = not arg[10] and call('HMGET', key, 'v', 'i', 'n', 'e', 'r', 'b')
if field then
  local limit, last = arg[4] + 0, field[4]
  local known, waiting = field[1] == '1', field[3]
  if not field[2] and (known and last or not (known or waiting or last)
      and call('EXISTS', key, KEYS[2], KEYS[3]) == 0)
    and (not waiting or waiting == '0') and field[5] ~= string.sub(arg[1], 1, 16)
    and now <= limit and limit <= now + (arg[8] or 3000000) * 2 and now < 9006099743113216 then
    local first, floor, told = 0, arg[5] + 1, field[6]
    if known then first = last + 1 end
    if first < now then first = now end
    if first < floor then first = floor end
    local deadline, digits = now + arg[3], string.format
    -- Formatting a large number here costs a third of what the server would take for it.
    if known then
      last = first + 1023
      call('HSET', key, 'i', arg[1], 'd', digits('%.0f', deadline), 'l', arg[3], 'c', arg[2],
        't', digits('%.0f', first), 'e', digits('%.0f', last))
    else
      -- A counter that was lost has left a block at the most, and nobody knows how it ended.
      first, told = (floor > now and floor - 1 or now) + 1024, 2
      last = first + 1023
      call('HSET', key, 'v', '1', 'i', arg[1], 'd', digits('%.0f', deadline), 'l', arg[3],
        'c', arg[2], 't', digits('%.0f', first), 'e', digits('%.0f', last), 'b', '2')
    end
    -- A hold's flags are not there where none is set.
    if arg[6] ~= '0' then call('HSET', key, 'f', arg[6]) end
    local ttl = (deadline > last and deadline or last) - now
    call('PEXPIRE', key, digits('%d', ttl / 1000 + 86400000))
    return { now, 0, first, last, arg[3] + 0, (told or 0) + 0 }
  end
end
