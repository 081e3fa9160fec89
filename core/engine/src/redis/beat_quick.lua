
-- Beat: the holds of ordinary owners, and who waits behind one, if who is first lives and nobody is
-- parked; one by one. The others, and those that cannot be read, are left to the part below.
-- KEYS: record, queue, order of each. ARGV: client, polling (0, 1; and 2 for five keys of each, 8 for six, 4 for
-- the record alone, 16 for it and the two keys of its holds, which are renewed, while the slot moves and nobody can be
-- handed the lock); then hold, lease, used, silence
-- of each; and how many wait within the client behind each, left out where there is nobody.
if now >= 9006099743113216 then return { err = 'CLOCK' } end
-- Each lock's keys are three, or five or six, or one; or, of one alone, its record and those of its holds.
local polling, each, spread = arg[2] + 0, 3, false
if polling >= 16 then
  polling, spread = polling - 16, true
elseif polling >= 8 then
  polling, each = polling - 8, 6
elseif polling >= 4 then
  polling, each = polling - 4, 1
elseif polling >= 2 then
  polling, each = polling - 2, 5
end
local answers = { now }

-- As it stands behind the client's name.
local function count_of(i)
  local count = arg[#KEYS / each * 4 + 2 + i] or '0'
  return count == '0' and '' or '\t' .. count
end

-- Whether all who wait are to be served, and the first of them lives.
local function orderly(queue, order, count)
  return call('ZCOUNT', order, '0', '+inf') == count and head(queue, order)
end

local function hold(field, i, at, waiting)
  local deadline, lease, last = field[5] + 0, arg[at + 1] + 0, field[7] + 0
  local used, shown, token = arg[at + 2] + 0, (field[10] or 0) + 0, field[8] + 0
  local first = used > shown and used >= token
  local client, count = field[11] .. '', count_of(i)
  if deadline > now + field[6] then deadline = now + field[6] end
  if first or deadline < now + lease and (shown < token or used == shown) then
    deadline = now + lease
  end
  if last < now then last = now end
  if last < used + 1024 then last = used + 1024 end
  lease = deadline - now
  local ttl = (deadline > last and deadline or last) - now
  local record, told = KEYS[(i - 1) * each + 1], (field[9] or 0) + 0
  local kept = try('PEXPIRE', record, digits('%d', ttl / 1000 + 86400000))
  if type(kept) == 'table' then return kept.err end
  call('HSET', record, 'd', digits('%.0f', deadline), 'l', digits('%.0f', lease),
    'e', digits('%.0f', last), 'f', polling)
  if first then call('HSET', record, 'u', arg[at + 2]) end
  if count ~= '' or string.find(client, '\t', 1, true) then
    call('HSET', record, 'c', string.match(client, '^[^\t]*') .. count)
  end
  return { 0, token, last, lease, told, waiting }
end

local function waiter(field, i, at, count)
  local queue, order, id = KEYS[(i - 1) * each + 2], KEYS[(i - 1) * each + 3], arg[at]
  local ticket, lease, claim, client, owner = string.match(call('HGET', queue, id) or '',
    '^(%d+) %d+ [01] (%d+) (%d+) %d+\n([^\t\n]*)[^\n]*(\n.*)$')
  if not ticket then return end
  local first = call('ZRANGEBYSCORE', order, '0', '+inf', 'LIMIT', '0', '1')[1]
  if first == id then
    if call('ZCOUNT', order, '0', '+inf') ~= count then return end
  elseif not orderly(queue, order, count) then
    return
  end
  local deadline, token = field[5] + 0, field[8] + 0
  local ahead = first == id and 0 or call('ZCOUNT', order, '0', '(' .. ticket)
  local ttl = digits('%d', (deadline - now) / 1000 + 86400000)
  local kept = try('PEXPIRE', queue, ttl)
  if type(kept) == 'table' then return kept.err end
  call('PEXPIRE', order, ttl)
  call('HSET', queue, id,
    digits('%s %.0f %d %s %s %s\n%s%s%s', ticket, now, polling, lease, claim, arg[at + 3], client,
      count_of(i), owner))
  return { 1, token, first == id and deadline - now or -1, ahead, ticket + 0 }
end

local function beat(i)
  local field, at = try('HMGET', KEYS[(i - 1) * each + 1], 'v', 'i', 'n', 'f', 'd', 'l', 'e', 't', 'b', 'u', 'c'), i * 4 - 1
  if field.err then return field.err end
  if field[1] ~= '1' or not field[2] or (field[4] or 0) + 0 >= 4 or field[5] + 0 <= now then return end
  local count = (field[3] or 0) + 0
  if field[2] == arg[at] then
    if count == 0 or each == 1 or orderly(KEYS[(i - 1) * each + 2], KEYS[(i - 1) * each + 3], count) then
      return hold(field, i, at, count)
    end
  elseif count > 0 and each > 1 and field[5] + 0 <= now + field[6] then
    return waiter(field, i, at, count)
  end
end

-- Answers those whom `serve` can, of `some` or of all, each lock's in their order; gives the others.
local function answer(serve, some)
  local rest
  for place = 1, some and #some or #KEYS / each do
    local i = some and some[place] or place
    local record, ok, state = KEYS[(i - 1) * each + 1], false, nil
    if not (rest and rest[record]) then ok, state = pcall(serve, i) end
    if ok and state then
      answers[i + 1] = state
    else
      rest = rest or {}
      rest[#rest + 1], rest[record] = i, true
      answers[i + 1] = ''
    end
  end
  return rest
end

local left = spread and { 1 } or answer(beat)
if not left then return answers end
