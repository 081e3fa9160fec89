
-- Acquire: a shared hold, or permits, of no explicit owner, where nobody waits: of a free lock, or beside
-- others of the same kind. KEYS: all five. ARGV: as of a waiter, with the mode.
local record = arg[15] and arg[10] .. arg[11] .. arg[12] == ''
  and call('HMGET', key, 'v', 'n', 'a', 'h', 's', 'w', 'e', 'b', 'r', 'i')
if record then
  local last, one, kept, hash, due = record[7], record[3], record[6], KEYS[4], KEYS[5]
  local limit, count, all = arg[4] + 0, string.match(arg[15], '^p (%d+) (%d+)$')
  count, all = (count or 0) + 0, (all or 0) + 0
  local held, out, of, place
  local free = not record[10] and (record[1] == '1' and last and (record[2] or '0') == '0'
    or not (record[1] or record[2] or last) and call('EXISTS', key, KEYS[2], KEYS[3]) == 0)
  if free then
    held, out, of, place = 0, 0, all, 0
  else
    held, out, of, place = together(record[1], record[2], one, record[4], record[5], kept, due)
  end
  if held and of == all and out + count <= of and held < 10000
    and record[9] ~= string.sub(arg[1], 1, 16) and now <= limit
    and limit <= now + (arg[8] == '' and 3000000 or arg[8]) * 2 and now < 9006099743113216 then
    local token, deadline, told = arg[5] + 1, now + arg[3], (record[8] or 0) % 4
    if not last then
      -- A counter that was lost has left a block at the most.
      token = (token > now and token - 1 or now) + 1024
    else
      if token < now then token = now end
      if token <= last + 0 then token = last + 1 end
    end
    -- Permits take a block, where that does not outrun the clock.
    local stop = token
    if all > 0 and last and last + 0 < now and arg[5] + 0 < now then stop = token + 1023 end
    local id, first, ends = arg[1], digits('%.0f', token), digits('%.0f', deadline)
    local final = digits('%.0f', stop)
    local latest = deadline > stop and deadline or stop
    local hold = digits('%s %s %s %s %d %s\n%s\n', ends, arg[3], arg[6], first, place + 1, arg[15],
      arg[2])
    local done = true
    if free then
      -- The only one stands in the record.
      call('HSET', key, 'v', '2', 't', first, 'e', final, 'a', id .. ' ' .. hold)
      if not last and all == 0 then
        told = 2
        call('HSET', key, 'b', '2')
      end
      call('PEXPIRE', key, digits('%d', (latest - now) / 1000 + 86400000))
    else
      local stamp = digits('%.0f', now)
      local numbers = digits('%d 0 %d %d %d', held + 1, out + count, all, place + 1)
      if one and one ~= '' then
        local other, line = string.match(one, '^(%x+) (.*)$')
        local before = string.match(line, '^%d+')
        done = other ~= id
        if done then
          -- From now on each stands by itself.
          if latest < before + 0 then latest = before + 0 end
          call('HSET', key, 't', first, 'e', final, 's', stamp, 'w', digits('%.0f', latest),
            'h', numbers, 'a', '')
          call('DEL', hash, due)
          call('HSET', hash, other, line, id, hold)
          call('ZADD', due, before, other, ends, id, '-1', '=' .. other, '-2', '=' .. id)
          local ttl = digits('%d', (latest - now) / 1000 + 86400000)
          call('PEXPIRE', key, ttl)
          call('PEXPIRE', hash, ttl)
          call('PEXPIRE', due, ttl)
        end
      else
        done = latest <= kept + 3600000000 and call('HLEN', hash) >= held
          and call('ZADD', due, 'NX', ends, id, -1 - place, '=' .. id) == 2
        if done then
          call('HSET', key, 't', first, 'e', final, 's', stamp, 'h', numbers)
          call('HSET', hash, id, hold)
        end
      end
    end
    if done then return { now, 0, token, stop, arg[3] + 0, all == 0 and told or 0 } end
  end
end
