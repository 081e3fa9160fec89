
-- Release: one of those who share a lock that nobody waits for; without an explicit owner. KEYS: all five.
if KEYS[5] then
  local record, hash, due = call('HMGET', key, 'v', 'n', 'a', 'h', 's', 'w', 'e', 'b'), KEYS[4], KEYS[5]
  local one, told, released = record[3], 1 - arg[3] % 2, string.sub(arg[1], 1, 16)
  local held, out, of, place = together(record[1], record[2], one, record[4], record[5], record[6], due)
  local mode, count
  if held and one and one ~= '' then
    mode = string.find(one, arg[1], 1, true) == 1
  elseif held then
    mode, count = string.match(call('HGET', hash, arg[1]) or '',
      '^[%d ]+ ([sp]) ?(%d*)[ %d]*\n[^\n]*\n$')
  end
  if mode and held > 1 then
    call('HDEL', hash, arg[1])
    call('ZREM', due, arg[1], '=' .. arg[1])
    call('HSET', key, 'r', released, 'h',
      digits('%d 0 %d %d %d', held - 1, out - (mode == 'p' and count or 0), of, place))
    return { now, told }
  elseif mode then
    local last = record[7] + 0
    if count then call('DEL', hash, due) end
    if (record[8] or '0') == '0' and last < now + 1024 then
      call('DEL', key)
      call('HSET', key, 'v', '1', 'e', record[7], 'r', released)
      call('PEXPIRE', key, arg[4])
    else
      -- What is to be told is kept, as it was before.
      local ahead = last > now and last - now or 0
      call('PEXPIRE', key, digits('%d', ahead / 1000 + 86400000))
      call('HSET', key, 'v', '1', 'r', released, 'a', '')
    end
    return { now, told }
  end
end
