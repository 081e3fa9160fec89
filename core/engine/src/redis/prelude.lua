-- What every operation shares: a lock's state out of its two keys, the rules, and back again.
-- `now` is set before this part.

local NO, YES, UNKNOWN = 0, 1, 2
local BLOCK = 1024

local function bit(flags, value) return flags % (value * 2) >= value end

local function flags(a, b, c) return (a and 1 or 0) + (b and 2 or 0) + (c and 4 or 0) end

local function load_holds(s, field)
  if not field.i then return end
  local f = field.f + 0
  s.holds[1] = { id = field.i, deadline = field.d + 0, lease = field.l + 0, client = field.c,
    polling = bit(f, 1), claim = bit(f, 2) }
  for line in string.gmatch(field.x or '', '[^\n]+') do
    local id, deadline, lease, more, client =
      string.match(line, '^(%x+) (%d+) (%d+) (%d) (.*)$')
    more = more + 0
    s.holds[#s.holds + 1] = { id = id, deadline = deadline + 0, lease = lease + 0,
      client = client, polling = bit(more, 1), claim = bit(more, 2) }
  end
  s.owner = field.o or ''
end

local function load_waiter(id, text)
  local ticket, heard, f, lease, claim, silence, client, owner =
    string.match(text, '^(%d+) (%d+) (%d) (%d+) (%d+) (%d+)\n([^\n]*)\n(.*)$')
  f = f + 0
  return { id = id, ticket = ticket + 0, heard = heard + 0, polling = bit(f, 1),
    silent = bit(f, 2), lease = lease + 0, claim = claim + 0, silence = silence + 0,
    client = client, owner = owner }
end

-- Reads and checks both keys; nothing is written yet. A second result is why it may not be used.
local function load(key, queue, grows)
  local record, waiting = redis.call('HGETALL', key), redis.call('HGETALL', queue)
  local field = {}
  for i = 1, #record, 2 do field[record[i]] = record[i + 1] end
  if #record > 0 and field.v ~= '1' then
    local version = tonumber(field.v or '')
    if version and version > 1 then return nil, 'LAYOUT ' .. field.v end
    return nil, 'FOREIGN'
  end
  local s = {
    key = key, queue = queue, grows = grows, holds = {}, owner = '', waiters = {},
    token = (field.t or 0) + 0, last = (field.e or 0) + 0, ticket = (field.k or 0) + 0,
    released = field.r or '', abandoned = (field.b or NO) % 4, losses = math.floor((field.b or 0) / 4),
    failed = 0, changed = {}, gone = {}, dirty = false,
  }
  load_holds(s, field)
  for i = 1, #waiting, 2 do
    s.waiters[#s.waiters + 1] = load_waiter(waiting[i], waiting[i + 1])
  end
  if #s.waiters + math.max(#s.holds - 1, 0) ~= (field.n or 0) + 0 then s.dirty = true end
  return s
end

local function span(s)
  local latest = s.last
  for _, hold in ipairs(s.holds) do latest = math.max(latest, hold.deadline) end
  return math.floor(math.max(latest - now, 0) / 1000) + 86400000
end

-- The first write decides whether the server lets this script write at all. What makes room or
-- keeps a hold must go on when memory is full; what takes more must stop here.
local function begin(s)
  if s.begun then return end
  s.begun = true
  if s.grows then
    redis.call('HSET', s.key, 'v', '1')
  else
    redis.call('PEXPIRE', s.key, span(s))
  end
end

-- What a holder hears of its predecessor, and of how many holds its owner lost since.
local function news(s) return s.abandoned + s.losses * 4 end

local function save_record(s)
  local more = {}
  for i = 2, #s.holds do
    local hold = s.holds[i]
    more[#more + 1] = string.format('%s %.0f %.0f %d %s\n', hold.id, hold.deadline, hold.lease,
      flags(hold.polling, hold.claim), hold.client)
  end
  redis.call('HSET', s.key, 'v', '1', 'o', s.owner, 't', s.token, 'e', s.last, 'k', s.ticket,
    'r', s.released, 'b', news(s), 'n', #s.waiters + #more, 'x', table.concat(more))
  local hold = s.holds[1]
  if hold then
    redis.call('HSET', s.key, 'i', hold.id, 'd', hold.deadline, 'l', hold.lease,
      'f', flags(hold.polling, hold.claim, s.owner ~= ''), 'c', hold.client)
  else
    redis.call('HDEL', s.key, 'i')
  end
end

local function save(s)
  if not s.dirty and not next(s.changed) and not next(s.gone) then return end
  begin(s)
  -- Without a counter there is no record, only a queue that outlived it.
  if s.last > 0 then
    save_record(s)
    redis.call('PEXPIRE', s.key, span(s))
  end
  for id in pairs(s.gone) do redis.call('HDEL', s.queue, id) end
  for _, w in ipairs(s.waiters) do
    if s.changed[w.id] then
      redis.call('HSET', s.queue, w.id, string.format('%.0f %.0f %d %.0f %.0f %.0f\n%s\n%s',
        w.ticket, w.heard, flags(w.polling, w.silent), w.lease, w.claim, w.silence,
        w.client, w.owner))
    end
  end
  if #s.waiters > 0 then redis.call('PEXPIRE', s.queue, span(s)) end
end

-- 1 when somebody listens, 0 when nobody does, -1 when the store may not publish.
local function publish(s, client, payload)
  begin(s)
  local prefix, name = string.match(s.key, '^([^{]*){(.*)}$')
  local heard = redis.pcall('PUBLISH', prefix .. 'inbox:' .. string.sub(client, 1, 16),
    payload .. ' ' .. name)
  if type(heard) ~= 'number' then
    s.failed = 1
    return -1
  end
  return heard > 0 and 1 or 0
end

local function hold_of(s, id)
  for i, hold in ipairs(s.holds) do
    if hold.id == id then return hold, i end
  end
end

local function waiter_of(s, id)
  for i, waiter in ipairs(s.waiters) do
    if waiter.id == id then return waiter, i end
  end
end

local function is_live(w)
  return not w.silent and w.heard <= now and now < w.heard + w.silence
end

local function is_before(w, other)
  return w.ticket < other.ticket or w.ticket == other.ticket and w.id < other.id
end

local function remove_waiter(s, at)
  local waiter = table.remove(s.waiters, at)
  s.gone[waiter.id] = true
  s.dirty = true
  return waiter
end

local function others(s, id)
  local count = 0
  for _, w in ipairs(s.waiters) do
    if w.id ~= id and is_live(w) then count = count + 1 end
  end
  return count
end

local function hear(s, id, polling)
  local waiter = waiter_of(s, id)
  if not waiter then return end
  waiter.heard, waiter.silent, waiter.polling = now, false, polling
  s.changed[id] = true
  return waiter
end

local function vacate(s) s.owner, s.losses = '', 0 end

-- Those of the owner's holds that remain were not told of it.
local function lose(s, how)
  if s.abandoned ~= YES then s.abandoned = how end
  if #s.holds == 0 then vacate(s) else s.losses = s.losses + 1 end
  s.dirty = true
end

-- Nothing outlives its lease, whatever the clock did; nobody who fell silent keeps a place for
-- ever.
local function tick(s)
  local heard, unheard = false, false
  for i = #s.holds, 1, -1 do
    local hold = s.holds[i]
    if hold.deadline > now + hold.lease then
      hold.deadline = now + hold.lease
      s.dirty = true
    end
    if now >= hold.deadline then
      if hold.claim then unheard = true else heard = true end
      table.remove(s.holds, i)
    end
  end
  if heard then lose(s, YES) elseif unheard then lose(s, UNKNOWN) end
  for i = #s.waiters, 1, -1 do
    local w = s.waiters[i]
    if w.heard > now then
      w.heard, w.silent = now, true
      s.changed[w.id] = true
    end
    if now >= w.heard + w.silence * 10 then remove_waiter(s, i) end
  end
end

local function reserve(s, floor)
  if s.last == 0 then
    if s.abandoned == NO then s.abandoned = UNKNOWN end
    s.token = math.max(now, floor) + BLOCK
  else
    s.token = math.max(s.last + 1, now, floor + 1)
  end
  s.last = s.token + BLOCK - 1
  s.dirty = true
end

local function add_hold(s, id, client, lease, polling, claim)
  s.holds[#s.holds + 1] = { id = id, client = client, deadline = now + lease, lease = lease,
    polling = polling, claim = claim }
  s.dirty = true
end

local function renew(s, hold, lease, polling)
  hold.deadline = math.max(hold.deadline, now + lease)
  hold.lease = hold.deadline - now
  hold.claim, hold.polling = false, polling
  s.dirty = true
end

local function is_held_by(s, owner)
  return #s.holds > 0 and owner ~= '' and owner == s.owner
end

local function next_to_serve(s)
  local free, best, at = #s.holds == 0, nil, nil
  for i, w in ipairs(s.waiters) do
    if is_live(w) and (free or is_held_by(s, w.owner)) and (not best or is_before(w, best)) then
      best, at = w, i
    end
  end
  return best, at
end

local function serve(s, w, at, caller, floor)
  local token, last, abandoned = s.token, s.last, s.abandoned
  if #s.holds == 0 then reserve(s, floor) end
  local called = w.id == caller
  if not called and not w.polling then
    local listeners = publish(s, w.client, '1 granted ' .. w.id .. ' ' .. string.format('%.0f %.0f %d %d', s.token,
      s.last, news(s), others(s, w.id)))
    if listeners == 0 then
      s.token, s.last, s.abandoned = token, last, abandoned
      w.silent = true
      s.changed[w.id] = true
      return
    end
  end
  remove_waiter(s, at)
  s.owner = w.owner
  add_hold(s, w.id, w.client, called and w.lease or math.min(w.claim, w.lease), w.polling,
    not called)
end

-- Hands a free lock to its first live waiter, and an owner's lock to all waiters of that owner.
local function settle(s, caller, floor)
  if now >= 9006099743113216 then return end
  local w, at = next_to_serve(s)
  while w do
    serve(s, w, at, caller, floor)
    w, at = next_to_serve(s)
  end
end

-- Ends a hold or leaves the queue, without handing on: 0 done, 1 left, 2 unknown.
local function finish(s, id, used, how)
  local told, lost, losses = bit(how, 1), bit(how, 2), math.floor(how / 4)
  local hold, at = hold_of(s, id)
  if hold then
    table.remove(s.holds, at)
    s.released = id
    s.dirty = true
    if lost then
      lose(s, YES)
    elseif told and used >= s.token and losses == s.losses then
      -- Not when a repeated release meets a late copy of its own acquire, granted for nobody.
      s.abandoned = NO
    end
    if #s.holds == 0 then
      vacate(s)
      s.last = math.max(s.token, used)
    end
    return told and 0 or 1
  end
  local waiter, place = waiter_of(s, id)
  if waiter then
    remove_waiter(s, place)
    return 1
  end
  return s.released == id and 0 or 2
end

local function expires_in(s)
  local latest = now - 1
  for _, hold in ipairs(s.holds) do latest = math.max(latest, hold.deadline) end
  return latest - now
end

local function standing(s, id)
  local hold = hold_of(s, id)
  if hold then
    return { 0, s.token, s.last, hold.deadline - now, news(s), others(s, id), s.failed }
  end
  local waiter, head = waiter_of(s, id), 1
  for _, w in ipairs(s.waiters) do
    if is_live(w) and is_before(w, waiter) then head = 0 end
  end
  return { 1, s.token, expires_in(s), others(s, id), waiter.ticket, head, s.failed }
end
