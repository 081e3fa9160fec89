
-- Acquire: a place in the queue behind an ordinary holder, if who is first lives and nobody is
-- parked.
if field and field[1] == '1' and field[2] and field[2] ~= arg[1] and field[4] and arg[7]
  and not arg[15]
  and field[5] ~= string.sub(arg[1], 1, 16) and now <= arg[4] + 0
  and arg[4] + 0 <= now + arg[8] * 2 and now < 9006099743113216 then
  local queue, order = KEYS[2], KEYS[3]
  local hold = call('HMGET', key, 'd', 'l', 'f', 'c', 't', 'k')
  local deadline, flags, count = hold[1] + 0, (hold[3] or 0) + 0, (field[3] or 0) + 0
  local first, _, _, _, _, _, before
  if count > 0 then first, _, _, _, _, _, before = head(queue, order) end
  if deadline > now and deadline <= now + hold[2] and flags < 4 and (count == 0 or first)
    and call('ZCOUNT', order, '0', '+inf') == count and call('HEXISTS', queue, arg[1]) == 0 then
    local ticket, last = arg[7] + 0, (hold[6] or 0) + 0
    if ticket == 0 then
      ticket = last + 1
      if ticket < now then ticket = now end
    end
    if last < ticket then last = ticket end
    local place, failed = digits('%.0f', ticket), 0
    call('HSET', key, 'k', digits('%.0f', last), 'n', count + 1)
    call('HSET', queue, arg[1], digits('%s %.0f %s %s %s %s\n%s\n', place, now, arg[6], arg[3],
      arg[8], arg[9], arg[2]))
    call('ZADD', order, place, arg[1])
    local ttl = digits('%d', (deadline - now) / 1000 + 86400000)
    call('PEXPIRE', queue, ttl)
    call('PEXPIRE', order, ttl)
    -- A holder knows of those who came later, and one that polls has no inbox.
    if count == 0 and flags % 2 == 0 then
      local prefix, name = string.match(key, '^([^{]*){(.*)}$')
      local heard = try(PUBLISH, digits(INBOX, prefix, hold[4], name),
        '1 wanted ' .. field[2] .. ' ' .. name)
      if type(heard) ~= 'number' then failed = 1 end
    end
    local ahead = count > 0 and call('ZCOUNT', order, '0', '(' .. place) or 0
    local alone = not first or ticket < before or ticket == before and arg[1] < first
    return { now, 1, hold[5] + 0, alone and deadline - now or -1, ahead, ticket, failed }
  end
end
