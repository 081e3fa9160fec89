
-- Convert: a hold is shared from now on, or exclusive while nobody else holds. KEYS: all five.
-- ARGV: hold, mode, lease, not_after, floor, polling, used, flags (1 told, and what `b` had above 3).
local s, refused = load(1, false, KEYS[5])
if not s then return { err = refused } end
if now >= 9006099743113216 then return { err = 'CLOCK' } end

local id, lease, limit, floor = arg[1], arg[3] + 0, arg[4] + 0, arg[5] + 0
local mode = arg[2] == '' and '' or ' ' .. arg[2]

if s.released == short(id) then return { now, 4, s.token } end
if now > limit or limit > now + 6000000 then return { now, 3, s.token } end

-- As a release of what was exclusive of it; it holds on.
local function share(hold, used, how)
  if bit(how, 1) and used >= s.token and math.floor(how / 4) == s.losses then s.abandoned = NO end
  widen(s)
  hold = hold_at(s, id)
  tally(s, hold, -1)
  hold.mode, hold.token = mode, s.token
  if s.excl == 0 then
    -- Above whatever a writer was given, below whoever comes next.
    used = math.max(used, s.used)
    if used >= s.token then s.last = used + 1 else s.last = s.token end
    vacate(s)
    s.token, hold.token = s.last, s.last
  end
  tally(s, hold, 1)
  return hold
end

local function take(hold)
  tally(s, hold, -1)
  reserve(s, floor)
  s.owner, hold.mode, hold.token = hold.owner, mode, s.token
  tally(s, hold, 1)
end

tick(s)
local hold = hold_of(s, id)
local _, of = permits(hold and hold.mode or '')
if of > 0 then
  save(s)
  return { err = 'KIND ' .. digits('%d', of) }
end
local converted = hold and (hold.mode == mode or mode ~= '' or s.held == 1)
if converted then
  if hold.mode == '' and mode ~= '' then
    hold = share(hold, arg[7] + 0, arg[8] + 0)
  elseif hold.mode ~= mode then
    take(hold)
  end
  hold.deadline = math.max(hold.deadline, now + lease)
  hold.lease, hold.claim, hold.polling = hold.deadline - now, false, bit(arg[6] + 0, 1)
  if s.v == 2 then put_hold(s, hold) end
  s.dirty = true
end
settle(s, nil, floor)
local state
if converted then
  state = standing(s, id)
else
  state = { hold and 2 or 5, s.token, -1, others(s, id), 0, s.failed }
end
save(s)
table.insert(state, 1, now)
return state
