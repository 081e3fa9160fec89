
-- Acquire: everything else.
local s, refused = load(1, true, KEYS[5])
if not s then return { err = refused } end
if now >= 9006099743113216 then return { err = 'CLOCK' } end

local id, client, lease, limit, floor = arg[1], arg[2], arg[3] + 0, arg[4] + 0, arg[5] + 0
local polling, ticket, claim = bit(arg[6] + 0, 1), arg[7] or '', arg[8] or ''
local silence, owner, attach = arg[9] or '', arg[10] or '', arg[11] or ''
local mode = arg[15] and ' ' .. arg[15] or ''
local who = { id = id, client = client, owner = owner, mode = mode, polling = polling }
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
local hold = hold_of(s, id)
local other = not (hold or waiter) and other_kind(s, mode)
if other then
  save(s)
  return { err = 'KIND ' .. other }
end
if (arg[12] or '') ~= '' then
  finish(s, arg[12], arg[13] + 0, arg[14] + 0)
  if arg[12] == id then waiter, hold = nil, nil end
end

if hold then
  renew(s, hold, lease, polling, 0, client)
  settle(s, nil, floor)
  return answer(standing(s, id))
end

local joins, waits_for_itself = tie(s, owner, mode)
if waits_for_itself then return answer(end_wait(s, waiter, floor, 8, 0)) end
local _, of = permits(waiter and waiter.mode or '')
if waiter and hopeless(s, waiter) == 7 then return answer(end_wait(s, waiter, floor, 7, of)) end

if waiter then
  settle(s, id, floor)
  if newcomer and not hold_of(s, id) then tell_wanted(s) end
  return answer(standing(s, id))
end

-- Who shares the lock and finds nobody waiting need not queue to be let in.
local at_once = mode ~= '' and s.listed == 0 and (joins or fits(s, mode))
if attach == '' and ticket ~= '' and not at_once then
  ticket = ticket + 0
  if ticket == 0 then ticket = math.max(s.ticket + 1, now) end
  local alone = s.listed == 0
  queue_up(s, { id = id, ticket = ticket, heard = now, polling = polling, parked = false,
    lease = lease, claim = claim + 0, silence = silence + 0, client = client, owner = owner,
    mode = mode })
  settle(s, id, floor)
  if not hold_of(s, id) then
    s.ticket = math.max(s.ticket, ticket)
    s.dirty = true
    if alone then tell_wanted(s) end
  end
  return answer(standing(s, id))
end

settle(s, nil, floor)
joins = tie(s, owner, mode)
if attach ~= '' and joins ~= attach + 0 then
  return answer({ 6, s.token, -1, 0, 0, s.failed })
end
-- Live ones may stand behind those that this contact has passed over, and at the head of those who fit
-- when so many were let in at once.
if not joins and (s.cut or mode ~= '' and s.listed > 0 or not fits(s, mode)) then
  return answer({ 2, s.token, expires_in(s), others(s, id), 0, s.failed })
end
local token = admit(s, mode, owner, floor)
if mode == '' and s.held == 0 then s.owner = owner end
add_hold(s, who, token, lease, false)
return answer(standing(s, id))
