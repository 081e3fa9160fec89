
-- Acquire: everything else.
local s, refused = load(1, true)
if not s then return { err = refused } end
if now >= 9006099743113216 then return { err = 'CLOCK' } end

local id, client, lease, limit, floor = arg[1], arg[2], arg[3] + 0, arg[4] + 0, arg[5] + 0
local polling, ticket, claim = bit(arg[6] + 0, 1), arg[7] or '', arg[8] or ''
local silence, owner, attach = arg[9] or '', arg[10] or '', arg[11] or ''
if claim == '' then claim = 3000000 end

local function answer(state)
  save(s)
  table.insert(state, 1, now)
  return state
end

if s.released == short(id) then return { now, 4, s.token } end
if now > limit or limit > now + claim * 2 then return { now, 3, s.token } end

local waiter, newcomer = hear(s, id, polling, silence ~= '' and silence + 0 or nil, client)
tick(s)
if arg[12] then
  finish(s, arg[12], arg[13] + 0, arg[14] + 0)
  if arg[12] == id then waiter = nil end
end

local hold = hold_of(s, id)
if hold then
  renew(s, hold, lease, polling, 0, client)
  settle(s, nil, floor)
  return answer(standing(s, id))
end

if waiter then
  settle(s, id, floor)
  if newcomer and not hold_of(s, id) then tell_wanted(s) end
  return answer(standing(s, id))
end

if attach == '' and ticket ~= '' then
  ticket = ticket + 0
  if ticket == 0 then ticket = math.max(s.ticket + 1, now) end
  local alone = s.listed == 0
  queue_up(s, { id = id, ticket = ticket, heard = now, polling = polling, parked = false,
    lease = lease, claim = claim + 0, silence = silence + 0, client = client, owner = owner })
  settle(s, id, floor)
  if not hold_of(s, id) then
    s.ticket = math.max(s.ticket, ticket)
    s.dirty = true
    if alone then tell_wanted(s) end
  end
  return answer(standing(s, id))
end

settle(s, nil, floor)
local joins = is_held_by(s, owner)
if attach ~= '' and not (joins and attach + 0 == s.token) then
  return answer({ 6, s.token, -1, 0, 0, s.failed })
end
if #s.holds == 0 and not s.cut then
  reserve(s, floor)
  s.owner = owner
elseif not joins then
  return answer({ 2, s.token, expires_in(s), others(s, id), 0, s.failed })
end
add_hold(s, id, client, lease, polling, false)
return answer(standing(s, id))
