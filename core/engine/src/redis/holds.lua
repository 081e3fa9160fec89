
-- Layout 2: each hold by itself in a hash, and in a sorted set by its deadline. There '=' and its id
-- stand below zero for its place in the order of grants. `=owner` in the hash has how many shared holds
-- an explicit owner has, and their highest token; and `m` where they may differ, as after a conversion.

local function parse_hold(id, text)
  local deadline, lease, f, token, place, mode, client, owner =
    string.match(text or '', '^(%d+) (%d+) (%d) (%d+) (%d+)( ?[^\n]*)\n([^\n]*)\n(.*)$')
  if not deadline then return end
  f = f + 0
  return { id = id, deadline = deadline + 0, lease = lease + 0, polling = bit(f, 1),
    claim = bit(f, 2), token = token + 0, place = place + 0, mode = mode, client = client,
    owner = owner }
end

local function hold_at(s, id) return parse_hold(id, call('HGET', s.hash, id)) end

-- All of them, in the order of their grants.
local function all_holds(s)
  if s.v == 1 then return s.holds end
  local all, list = {}, call('HGETALL', s.hash)
  for i = 1, #list, 2 do
    local hold = string.sub(list[i], 1, 1) ~= '=' and parse_hold(list[i], list[i + 1])
    if hold then all[#all + 1] = hold end
  end
  table.sort(all, function(a, b) return a.place < b.place end)
  return all
end

-- So many of them as one contact tells, in the order of their grants, without the first `from`.
local function holds_from(s, from)
  local holds = {}
  if s.v == 1 then
    for i = from + 1, math.min(from + BATCH, #s.holds) do holds[#holds + 1] = s.holds[i] end
    return holds
  end
  for _, mark in ipairs(call('ZREVRANGEBYSCORE', s.due, '(0', '-inf', 'LIMIT', from, BATCH)) do
    holds[#holds + 1] = hold_at(s, string.sub(mark, 2))
  end
  return holds
end

local function put_hold(s, hold, new)
  begin(s)
  call('HSET', s.hash, hold.id, digits('%.0f %.0f %d %.0f %d%s\n%s\n%s', hold.deadline, hold.lease,
    flags(hold.polling, hold.claim), hold.token, hold.place, hold.mode, hold.client, hold.owner))
  if new then
    call('ZADD', s.due, hold.deadline, hold.id, -hold.place, '=' .. hold.id)
  else
    call('ZADD', s.due, hold.deadline, hold.id)
  end
  s.mark, s.ends, s.dirty = math.max(s.mark, now), math.max(s.ends, hold.deadline), true
end

-- The only hold may stand in the record: from now on it stands by itself.
local function unfold(s)
  if not s.one then return end
  begin(s)
  call('DEL', s.hash, s.due)
  put_hold(s, s.one, true)
  s.one, s.made = nil, true
end

local function tally(s, hold, by)
  s.held, s.out = s.held + by, s.out + by * permits(hold.mode)
  if hold.mode == '' then s.excl = s.excl + by end
  if hold.mode ~= ' s' or hold.owner == '' then return end
  local field = '=' .. hold.owner
  local count, token, differ =
    string.match(call('HGET', s.hash, field) or '', '^(%d+) (%d+)(.*)$')
  count, token, differ = (count or 0) + by, (token or hold.token) + 0, differ or ''
  if count < 1 then return call('HDEL', s.hash, field) end
  if token ~= hold.token then differ = ' m' end
  token = math.max(token, hold.token)
  if by < 0 and differ ~= '' then
    token = 0
    for _, other in ipairs(all_holds(s)) do
      if other.mode == ' s' and other.owner == hold.owner and other.id ~= hold.id then
        token = math.max(token, other.token)
      end
    end
  end
  call('HSET', s.hash, field, digits('%d %.0f%s', count, token, differ))
end

local function enrol(s, hold)
  s.made = s.made or s.held == 0
  s.place = s.held > 0 and s.place + 1 or 1
  hold.place = s.place
  put_hold(s, hold, true)
  tally(s, hold, 1)
end

-- To layout 2, once somebody shares the lock or wants to.
local function widen(s)
  if s.v == 2 then return end
  begin(s)
  call('DEL', s.hash, s.due)
  call('HDEL', s.key, 'i', 'd', 'l', 'f', 'c', 'x')
  local holds = s.holds
  s.v, s.made, s.holds, s.held, s.excl = 2, true, {}, 0, 0
  for _, hold in ipairs(holds) do
    hold.token, hold.owner = s.token, s.owner
    enrol(s, hold)
  end
  s.dirty = true
end

-- Back again, once nobody holds or waits.
local function narrow(s)
  begin(s)
  call('DEL', s.key, s.hash, s.due)
  s.v, s.dirty, s.kept, s.ends = 1, true, 0, 0
end

-- Of `who` waits or asks: its id, client, owner, mode and whether it polls.
local function add_hold(s, who, token, lease, claim)
  if who.mode ~= '' then widen(s) end
  local hold = { id = who.id, client = who.client, owner = who.owner, mode = who.mode,
    polling = who.polling, token = token, deadline = now + lease, lease = lease, claim = claim }
  if s.held == 0 then
    local _, of = permits(who.mode)
    s.of = of
  end
  if s.v == 2 then return enrol(s, hold) end
  s.holds[#s.holds + 1] = hold
  s.held, s.excl, s.dirty = s.held + 1, s.excl + 1, true
end

local function end_hold(s, hold, at)
  s.dirty = true
  if s.v == 1 then
    table.remove(s.holds, at)
    s.held, s.excl = s.held - 1, s.excl - 1
    return
  end
  begin(s)
  call('HDEL', s.hash, hold.id)
  call('ZREM', s.due, hold.id, '=' .. hold.id)
  tally(s, hold, -1)
end

-- Nobody knows how an exclusive hold ended that is not there any more.
local function lose_unseen(s)
  if s.abandoned ~= YES then s.abandoned = UNKNOWN end
  if s.excl == 0 then s.owner, s.losses = '', 0 end
end

-- Counts the holds anew, and puts them in order.
local function recount(s)
  call('PEXPIRE', s.hash, span(s))
  call('DEL', s.due)
  local holds, before = all_holds(s), s.excl
  s.held, s.excl, s.out, s.made, s.dirty = #holds, 0, 0, true, true
  for _, hold in ipairs(holds) do
    call('ZADD', s.due, hold.deadline, hold.id, -hold.place, '=' .. hold.id)
    if hold.mode == '' then s.excl = s.excl + 1 end
    s.out, s.ends = s.out + permits(hold.mode), math.max(s.ends, hold.deadline)
  end
  call('PEXPIRE', s.due, span(s))
  if s.excl < before then lose_unseen(s) end
end

-- One of the holds' two keys may be lost: the order is made anew; holds are not.
local function mend_holds(s)
  local entries, due = call('HLEN', s.hash), call('ZCARD', s.due)
  if s.held == 0 then
    if entries + due > 0 then call('DEL', s.hash, s.due) end
  elseif entries == 0 then
    call('DEL', s.due)
    local before = s.excl
    s.held, s.excl, s.out, s.dirty = 0, 0, 0, true
    if before > 0 then lose_unseen(s) end
  elseif due == 0 then
    recount(s)
  end
end

-- No deadline can lie beyond now and its lease unless the clock stepped back since it was written.
local function clamp(s)
  if now >= s.mark then return end
  for _, hold in ipairs(all_holds(s)) do
    if hold.deadline > now + hold.lease then
      hold.deadline = now + hold.lease
      put_hold(s, hold)
    end
  end
  s.mark, s.dirty = now, true
end

-- A hold that is over, as long as there is one.
local function overdue(s)
  local id = call('ZRANGEBYSCORE', s.due, '0', digits('%.0f', now), 'LIMIT', '0', '1')[1]
  if not id then return end
  local hold = hold_at(s, id)
  if hold then return hold end
  -- It is damaged.
  begin(s)
  call('HDEL', s.hash, id)
  recount(s)
  return overdue(s)
end

-- When the last of them ends, or the first.
local function deadline_of(s, first)
  local id
  if first then
    id = call('ZRANGEBYSCORE', s.due, '0', '+inf', 'LIMIT', '0', '1')[1]
  else
    id = call('ZREVRANGEBYSCORE', s.due, '+inf', '0', 'LIMIT', '0', '1')[1]
  end
  local hold = id and hold_at(s, id)
  return hold and hold.deadline or now - 1
end
