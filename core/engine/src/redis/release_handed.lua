
-- What follows needs the queue: the client asks again, with its keys.
if not KEYS[2] then return { err = 'QUEUE' } end

-- Release: handed to the first of those who wait, if it lives, is subscribed and has no explicit
-- owner, and nobody is parked.
if field and field[2] and field[2] ~= '0' and now < 9006099743113216 then
  local queue, order, count = KEYS[2], KEYS[3], field[2] + 0
  local id, lease, claim, client, owner, polling = head(queue, order)
  if id and owner == '' and polling == '0' and call('ZCOUNT', order, '0', '+inf') == count then
    local token, span = arg[2] + 1, claim + 0
    if token < now then token = now end
    if span > lease + 0 then span = lease + 0 end
    local last = token + 1023
    local ttl = (now + span > last and now + span or last) - now
    call('PEXPIRE', key, digits('%d', ttl / 1000 + 86400000))
    local prefix, name = string.match(key, '^([^{]*){(.*)}$')
    local first, ended = digits('%.0f', token), digits('%.0f', last)
    local heard = try(PUBLISH, digits(INBOX, prefix, client, name),
      digits('1 granted %s %s %s 0 %d %s', id, first, ended, count - 1, name))
    if type(heard) == 'number' and heard > 0 then
      call('HSET', key, 'i', id, 'd', digits('%.0f', now + span), 'l', span, 'c', client,
        'f', '2', 't', first, 'e', ended, 'r', string.sub(arg[1], 1, 16), 'b', '0', 'n', count - 1)
      call('HDEL', queue, id)
      call('ZREM', order, id)
      return { now, 0 }
    end
  end
end
