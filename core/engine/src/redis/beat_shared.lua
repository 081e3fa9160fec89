
-- Beat: of those left, who shares a lock that nobody waits for.
local function sharer(i)
  local from, at = (i - 1) * each, i * 4 - 1
  local record, hash, due = KEYS[from + 1], KEYS[from + 4], KEYS[from + 5]
  local field = call('HMGET', record, 'v', 'n', 'a', 'h', 's', 'w', 'b', 'e', 't')
  local one, id = field[3], arg[at]
  if not together(field[1], field[2], one, field[4], field[5], field[6], due) then return end
  local alone = one and one ~= '' and string.match(one, '^' .. id .. ' (.*)$')
  -- A lone hold has nobody beside it, whatever is left of an earlier record.
  if one and one ~= '' and not alone then return end
  local deadline, token, mode, client, owner = string.match(alone or call('HGET', hash, id) or '',
    '^(%d+) %d+ %d (%d+) (%d+ [sp][ %d]*\n)([^\t\n]*)[^\n]*(\n.*)$')
  if not deadline then return end
  deadline = deadline + 0
  if deadline < now + arg[at + 1] then deadline = now + arg[at + 1] end
  local kept = alone and math.max(deadline, field[8]) or field[6] + 0
  if deadline > kept + 3600000000 then return end
  local ends = digits('%.0f', deadline)
  local hold = digits('%s %.0f %d %s %s%s%s%s', ends, deadline - now, polling, token, mode, client,
    count_of(i), owner)
  local done = try('PEXPIRE', record, digits('%d', (kept - now) / 1000 + 90000000))
  if type(done) == 'table' then return done.err end
  if alone then
    call('HSET', record, 'a', id .. ' ' .. hold)
  else
    call('HSET', hash, id, hold)
    call('ZADD', due, ends, id)
    call('HSET', record, 's', digits('%.0f', now))
  end
  local last = token == field[9] and string.find(mode, 'p') and field[8] or token
  return { 0, token + 0, last + 0, deadline - now, string.find(mode, 's') and (field[7] or 0) % 4 or 0 }
end

if each >= 5 then
  left = answer(sharer, left)
  if not left then return answers end
end
