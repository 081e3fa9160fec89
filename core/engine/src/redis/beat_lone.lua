
-- Beat: while a slot moves, what is left of those who name the record alone, or it and the keys of the holds: these
-- are renewed. Nobody is let in, and nothing ends.
local function lone(i)
  local record, hash, due, at = KEYS[i], KEYS[2], KEYS[3], i * 4 - 1
  local id, asked, used, said = arg[at], arg[at + 1] + 0, arg[at + 2] + 0, count_of(i)
  local field = call('HMGET', record, 'v', 'i', 'd', 'l', 'f', 'c', 'x', 'e', 't', 'b', 'u', 'n', 'a', 'w', 's', 'o')
  local token, last, told, shown = (field[9] or 0) + 0, (field[8] or 0) + 0, (field[10] or 0) + 0, (field[11] or 0) + 0
  local waiting = (field[12] or 0) + 0
  local first = used > shown and used >= token

  -- The end of an exclusive hold, or of one that is shared; nothing where it is over.
  local function later(deadline, lease, exclusive)
    deadline = deadline + 0
    if deadline <= now then return end
    if deadline > now + lease then deadline = now + lease end
    if exclusive and first then return now + asked end
    -- A late copy of what an earlier holder of an ordinary owner asked leaves it alone.
    if exclusive and (field[16] or '') == '' and shown >= token and used ~= shown then return deadline end
    return deadline < now + asked and now + asked or deadline
  end

  -- A first write that is refused says why.
  local function keep(latest)
    local done = try('PEXPIRE', record, digits('%d', (latest - now) / 1000 + 90000000))
    return type(done) == 'table' and done.err
  end

  local function count(client) return string.match(client, '^[^\t]*') .. said end

  -- The block goes on, as far as the clock and what was shown.
  local function topped()
    if last < now then last = now end
    if last < used + 1024 then last = used + 1024 end
    return digits('%.0f', last)
  end

  if field[1] == '1' then
    local more, owned = field[7] or '', (field[16] or '') ~= ''
    if not owned then return end
    local _, lines = string.gsub(more, '\n', '')
    local ends
    if field[2] == id then
      ends = later(field[3], field[4], true)
    else
      local before, deadline, lease, client, behind =
        string.match('\n' .. more, '^(.*\n)' .. id .. ' (%d+) (%d+) %d ([^\n]*)(\n.*)$')
      ends = deadline and later(deadline, lease, true)
      if ends then
        more = string.sub(before .. digits('%s %.0f %.0f %d %s', id, ends, ends - now, polling,
          count(client)) .. behind, 2)
      end
    end
    if not ends then return end
    local refused = keep(math.max(ends, last, now))
    if refused then return refused end
    if field[2] == id then
      call('HSET', record, 'd', digits('%.0f', ends), 'l', digits('%.0f', ends - now), 'f',
        polling + 4, 'c', count(field[6]))
    else
      call('HSET', record, 'x', more)
    end
    call('HSET', record, 'e', topped())
    if first then call('HSET', record, 'u', arg[at + 2]) end
    return { 0, token, last, ends - now, told, waiting - lines }
  end

  if field[1] ~= '2' then return end
  local one = field[13] or ''
  local alone = string.match(one, '^' .. id .. ' (.*)$')
  -- A lone hold has nobody beside it, whatever is left of an earlier record.
  if one ~= '' and not alone or not (alone or spread) then return end
  local deadline, lease, own, place, mode, client, owner = string.match(
    alone or call('HGET', hash, id) or '',
    '^(%d+) (%d+) %d (%d+) (%d+)( ?[^\n]*)\n([^\n]*)\n(.*)$')
  local ends = deadline and later(deadline, lease, mode == '')
  local kept = alone and math.max(ends or 0, last) or (field[14] or 0) + 0
  if not ends or ends > kept + 3600000000 then return end
  local refused = keep(math.max(kept, now))
  if refused then return refused end
  local hold = digits('%.0f %.0f %d %s %s%s\n%s\n%s', ends, ends - now, polling, own, place, mode,
    count(client), owner)
  if alone then
    call('HSET', record, 'a', id .. ' ' .. hold)
  else
    call('HSET', hash, id, hold)
    call('ZADD', due, digits('%.0f', ends), id)
    call('HSET', record, 's', digits('%.0f', math.max(now, (field[15] or 0) + 0)))
  end
  if mode == '' then
    call('HSET', record, 'e', topped())
    if first then call('HSET', record, 'u', arg[at + 2]) end
    return { 0, token, last, ends - now, told, waiting }
  end
  -- The block of the newest permits is the one that was reserved last.
  own = own + 0
  local shared = mode == ' s'
  return { 0, own, not shared and own == token and last or own, ends - now, shared and told % 4 or 0, waiting }
end

if each == 1 or spread then
  left = answer(lone, left)
  for _, i in ipairs(left or {}) do answers[i + 1] = 'QUEUE' end
  return answers
end
