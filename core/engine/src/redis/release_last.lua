-- Release: the only hold of an ordinary owner, by a holder who was told and had not lost it, of a
-- lock that nobody waits for. What is left says what the next holder's token must be above, and
-- which hold it was, for `retention`.
-- KEYS: record; queue and order, unless nobody is known to wait. ARGV: hold, used, flags (1 told, 2 lost, 4 times the losses that it
-- was told of), retention in milliseconds; in a cluster 1.
local field = arg[3] == '1' and call('HMGET', key, 'i', 'n', 'f', 'd', 't')
if field and (field[1] ~= arg[1] or field[3] and field[3] ~= '0' and field[3] ~= '1'
    or field[4] + 0 <= now or arg[2] + 0 < field[5] + 0) then
  field = nil
end
if field and (not field[2] or field[2] == '0') and arg[2] + 0 < now + 1024 then
  -- Removing is a first write that a full memory allows. In a cluster the key stays: while its slot moves, one
  -- that went would not be let in again.
  if arg[5] then
    call('HDEL', key, 'i', 'd', 'l', 'c', 't', 'b', 'f', 'n', 'k', 'u', 'x', 'o')
  else
    call('DEL', key)
  end
  call('HSET', key, 'v', '1', 'e', arg[2], 'r', string.sub(arg[1], 1, 16))
  call('PEXPIRE', key, arg[4])
  return { now, 0 }
end
