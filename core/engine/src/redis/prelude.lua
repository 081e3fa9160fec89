
-- What every operation shares: a lock's state out of its keys, the rules, and back again. Nothing
-- here reads the whole queue.

local try, digits = redis.pcall, string.format
local NO, YES, UNKNOWN = 0, 1, 2
local BLOCK, TRIES, FORGET = 1024, 512, 10
local ID = string.rep('%x', 32)

local function bit(flags, value) return flags % (value * 2) >= value end

local function flags(a, b, c) return (a and 1 or 0) + (b and 2 or 0) + (c and 4 or 0) end

-- What is kept of the hold that was released last.
local function short(id) return string.sub(id, 1, 16) end

local function read_holds(s, field)
  if not field.i then return end
  local f = (field.f or 0) + 0
  s.holds[1] = { id = field.i, deadline = field.d + 0, lease = field.l + 0,
    client = string.match(field.c, '^%x+ .*$') .. '', polling = bit(f, 1), claim = bit(f, 2) }
  for line in string.gmatch(field.x or '', '[^\n]+') do
    local id, deadline, lease, more, client =
      string.match(line, '^(%x+) (%d+) (%d+) (%d) (.*)$')
    more = more + 0
    s.holds[#s.holds + 1] = { id = id, deadline = deadline + 0, lease = lease + 0,
      client = client, polling = bit(more, 1), claim = bit(more, 2) }
  end
  s.owner = field.o or ''
end

-- Raises an error when the record is damaged.
local function read(field)
  local told = (field.b or NO) + 0
  local s = { holds = {}, owner = '', token = (field.t or field.e or 0) + 0,
    last = (field.e or 0) + 0, used = (field.u or 0) + 0, ticket = (field.k or 0) + 0, released = field.r or '',
    abandoned = told % 4, losses = math.floor(told / 4), entries = (field.n or 0) + 0, failed = 0 }
  read_holds(s, field)
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
    call('HSET', s.key, 'v', '1')
  else
    call('PEXPIRE', s.key, span(s))
  end
end

-- A waiter; nothing when it is not there, or cannot be read.
local function waiter_of(s, id)
  local ticket, heard, f, lease, claim, silence, client, owner =
    string.match(call('HGET', s.queue, id) or '',
      '^(%d+) (%d+) (%d) (%d+) (%d+) (%d+)\n([^\n]*)\n(.*)$')
  if not ticket then return end
  f = f + 0
  return { id = id, ticket = ticket + 0, heard = heard + 0, polling = bit(f, 1),
    parked = bit(f, 2), lease = lease + 0, claim = claim + 0, silence = silence + 0,
    client = client, owner = owner }
end

local function place(s, w)
  call('ZADD', s.order, w.parked and -w.ticket or w.ticket, w.id)
end

local function write(s, w)
  begin(s)
  s.queued = true
  call('HSET', s.queue, w.id, digits('%.0f %.0f %d %.0f %.0f %.0f\n%s\n%s', w.ticket, w.heard,
    flags(w.polling, w.parked), w.lease, w.claim, w.silence, w.client, w.owner))
end

-- One of the queue's two keys may be lost: the order is made anew; entries are not.
local function mend(s, entries)
  call('PEXPIRE', s.queue, span(s))
  s.count = 0
  if not entries then return call('DEL', s.order) end
  for _, id in ipairs(call('HKEYS', s.queue)) do
    local w = string.sub(id, 1, 1) ~= '=' and waiter_of(s, id)
    if w then
      place(s, w)
      s.count = s.count + 1
    end
  end
  call('PEXPIRE', s.order, span(s))
end

-- Reads and checks the keys; nothing is written yet, unless a key was lost. A second result is why
-- they may not be used.
local function load(at, grows)
  local key, queue, order = KEYS[at], KEYS[at + 1], KEYS[at + 2]
  local record, field = call('HGETALL', key), {}
  for i = 1, #record, 2 do field[record[i]] = record[i + 1] end
  if #record > 0 and field.v ~= '1' then
    local version = tonumber(field.v or '')
    if version and version > 1 then return nil, 'LAYOUT ' .. field.v end
    return nil, 'FOREIGN'
  end
  local count, entries = call('ZCARD', order), call('HLEN', queue)
  local ok, s = pcall(read, field)
  if not ok then return nil, 'DAMAGED' end
  s.key, s.queue, s.order, s.grows, s.count = key, queue, order, grows, count
  if (count > 0) ~= (entries > 0) then mend(s, entries > 0) end
  s.listed = s.count > 0 and call('ZCOUNT', order, '0', '+inf') or 0
  s.dirty = s.count + math.max(#s.holds - 1, 0) ~= s.entries
  return s
end

-- What a holder hears of its predecessor, and of how many holds its owner lost since.
local function news(s) return s.abandoned + s.losses * 4 end

local function save_record(s)
  local more = {}
  for i = 2, #s.holds do
    local hold = s.holds[i]
    more[#more + 1] = digits('%s %.0f %.0f %d %s\n', hold.id, hold.deadline, hold.lease,
      flags(hold.polling, hold.claim), hold.client)
  end
  call('HSET', s.key, 'v', '1', 'o', s.owner, 't', s.token, 'e', s.last, 'u', s.used,
    'k', s.ticket, 'r', s.released, 'b', news(s), 'n', s.count + #more, 'x', table.concat(more))
  local hold = s.holds[1]
  if hold then
    call('HSET', s.key, 'i', hold.id, 'd', hold.deadline, 'l', hold.lease,
      'f', flags(hold.polling, hold.claim, s.owner ~= ''), 'c', hold.client)
  else
    call('HDEL', s.key, 'i', 'f')
  end
end

-- What is left by a release that has nothing to tell is small, and kept for `retention`.
local function save(s, retention)
  local rests = retention and s.last > 0 and s.last < now + BLOCK and #s.holds == 0
    and s.count == 0 and s.abandoned == NO
  if s.dirty or rests and s.ticket + s.used > 0 then
    begin(s)
    -- Without a counter there is no record, only a queue that outlived it.
    if s.last == 0 then
      if s.grows then call('HDEL', s.key, 'v') end
    elseif rests then
      call('DEL', s.key)
      call('HSET', s.key, 'v', '1', 'e', s.last, 'r', s.released)
      call('PEXPIRE', s.key, retention)
    else
      save_record(s)
      call('PEXPIRE', s.key, span(s))
    end
  elseif s.begun and s.grows and s.last == 0 then
    call('HDEL', s.key, 'v')
  end
  if s.queued and s.count > 0 then
    call('PEXPIRE', s.queue, span(s))
    call('PEXPIRE', s.order, span(s))
  end
end

-- 1 when somebody listens, 0 when nobody does, -1 when the store may not publish.
local function publish(s, client, payload)
  begin(s)
  local prefix, name = string.match(s.key, '^([^{]*){(.*)}$')
  local heard = try('PUBLISH', prefix .. 'inbox:' .. string.sub(client, 1, 16),
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

-- Every holder with an inbox hears that somebody queued.
local function tell_wanted(s)
  for _, held in ipairs(s.holds) do
    if not held.polling then publish(s, held.client, '1 wanted ' .. held.id) end
  end
end

local function is_live(w)
  return not w.parked and w.heard <= now and now < w.heard + w.silence
end

-- The ids of an explicit owner's entries, one after the other.
local function owned(s, owner) return call('HGET', s.queue, '=' .. owner) or '' end

local function queue_up(s, w)
  write(s, w)
  place(s, w)
  if w.owner ~= '' then call('HSET', s.queue, '=' .. w.owner, owned(s, w.owner) .. w.id) end
  s.count, s.listed, s.dirty = s.count + 1, s.listed + 1, true
end

local function leave(s, w)
  begin(s)
  call('HDEL', s.queue, w.id)
  call('ZREM', s.order, w.id)
  if w.owner ~= '' then
    local left = string.gsub(owned(s, w.owner), ID, { [w.id] = '' })
    if left == '' then
      call('HDEL', s.queue, '=' .. w.owner)
    else
      call('HSET', s.queue, '=' .. w.owner, left)
    end
  end
  s.count, s.dirty = s.count - 1, true
  if not w.parked then s.listed = s.listed - 1 end
end

-- Passed over until it is heard again.
local function park(s, w)
  w.parked, w.heard = true, math.min(w.heard, now)
  write(s, w)
  place(s, w)
  s.listed = s.listed - 1
end

-- A client with how many wait within it, as `said` has that: after a tab, where there are any.
local function with_count(client, said)
  return string.match(client, '^[^\t]*') .. (string.match(said, '\t.*') or '')
end

-- A second result says that it was parked and that nobody else is listed: a newcomer to the holders.
local function hear(s, id, polling, silence, said)
  local w = waiter_of(s, id)
  if not w then return end
  local parked, alone = w.parked, s.listed == 0
  w.heard, w.polling, w.silence, w.parked = now, polling, silence or w.silence, false
  w.client = with_count(w.client, said)
  write(s, w)
  if parked then
    place(s, w)
    s.listed = s.listed + 1
  end
  return w, parked and alone
end

-- Who is listed, other than `id`.
local function others(s, id)
  local w = s.listed > 0 and waiter_of(s, id)
  return w and not w.parked and s.listed - 1 or s.listed
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
  if s.count == s.listed then return end
  for _, id in ipairs(call('ZREVRANGEBYSCORE', s.order, '(0', '-inf', 'LIMIT', '0', '2')) do
    local w = waiter_of(s, id) or { id = id, owner = '', parked = true, heard = 0, silence = 0 }
    if now >= w.heard + w.silence * FORGET then
      leave(s, w)
    elseif w.heard > now then
      w.heard = now
      write(s, w)
    end
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

-- The first word of a holder sets its hold's end; later ones only move it on; late copies of what
-- an earlier holder asked for leave it alone.
local function renew(s, hold, lease, polling, used, said)
  if used > s.used and used >= s.token then
    hold.deadline, s.used = now + lease, used
  elseif s.owner ~= '' or s.used < s.token or used == s.used then
    hold.deadline = math.max(hold.deadline, now + lease)
  end
  hold.lease = hold.deadline - now
  hold.claim, hold.polling, hold.client = false, polling, with_count(hold.client, said)
  s.dirty = true
end

local function is_held_by(s, owner)
  return #s.holds > 0 and owner ~= '' and owner == s.owner
end

-- Grants to a waiter; 1 when nobody heard of it, and it is parked.
local function serve(s, w, caller, floor)
  local token, last, abandoned = s.token, s.last, s.abandoned
  if #s.holds == 0 then reserve(s, floor) end
  local called = w.id == caller
  if not called and not w.polling then
    local listeners = publish(s, w.client, '1 granted ' .. w.id .. ' '
      .. digits('%.0f %.0f %d %d', s.token, s.last, news(s), s.listed - 1))
    if listeners == 0 then
      s.token, s.last, s.abandoned = token, last, abandoned
      park(s, w)
      return 1
    end
  end
  leave(s, w)
  s.owner = w.owner
  add_hold(s, w.id, w.client, called and w.lease or math.min(w.claim, w.lease), w.polling,
    not called)
  return 0
end

-- The waiters of the present explicit owner; how many of them were passed over.
local function join(s, caller, floor, tries)
  local own, passed = {}, 0
  if s.count == 0 or #s.holds == 0 or s.owner == '' then return 0 end
  for id in string.gmatch(owned(s, s.owner), ID) do
    local w = waiter_of(s, id)
    if w and is_live(w) then own[#own + 1] = w end
  end
  table.sort(own, function(a, b)
    return a.ticket < b.ticket or a.ticket == b.ticket and a.id < b.id
  end)
  for _, w in ipairs(own) do
    if passed < tries then passed = passed + serve(s, w, caller, floor) end
  end
  return passed
end

-- Whoever is to be served first, live or not.
local function first(s)
  while s.listed > 0 do
    local id = call('ZRANGEBYSCORE', s.order, '0', '+inf', 'LIMIT', '0', '1')[1]
    local w = waiter_of(s, id)
    if w then return w end
    -- It is lost or damaged.
    leave(s, { id = id, owner = '' })
  end
end

-- Hands a free lock to its first live waiter, and an owner's lock to all waiters of that owner.
-- Whoever is found silent at the head is parked, so that the first one is known to live.
local function settle(s, caller, floor)
  if now >= 9006099743113216 then return end
  local tries = TRIES
  tries = tries - join(s, caller, floor, tries)
  while tries > 0 do
    local w = first(s)
    if not w then break end
    if not is_live(w) then
      park(s, w)
      tries = tries - 1
    elseif #s.holds > 0 then
      break
    elseif serve(s, w, caller, floor) > 0 then
      tries = tries - 1
    else
      tries = tries - join(s, caller, floor, tries)
      break
    end
  end
  s.cut = tries == 0 and #s.holds == 0
  if s.cut then
    -- Asks for another contact, which goes on; who came last is likely to live.
    local id = call('ZREVRANGEBYSCORE', s.order, '+inf', '0', 'LIMIT', '0', '1')[1]
    local last = id and id ~= caller and waiter_of(s, id)
    if last and not last.polling then publish(s, last.client, '1 changed ' .. id) end
  end
end

-- Ends a hold or leaves the queue, without handing on: 0 done, 1 left, 2 unknown.
local function finish(s, id, used, how)
  local told, lost, losses = bit(how, 1), bit(how, 2), math.floor(how / 4)
  local hold, at = hold_of(s, id)
  if hold then
    table.remove(s.holds, at)
    s.released = short(id)
    s.dirty = true
    if lost then
      lose(s, YES)
    elseif told and used >= s.token and losses == s.losses then
      -- Not when a repeated release meets a late copy of its own acquire, granted for nobody.
      s.abandoned = NO
    end
    if #s.holds == 0 then
      -- Another hold of an explicit owner may have shown more.
      s.last = math.max(s.token, used, s.owner ~= '' and s.used or 0)
      vacate(s)
      s.token = s.last
    end
    return told and 0 or 1
  end
  local w = waiter_of(s, id)
  if w then
    leave(s, w)
    return 1
  end
  return s.released == short(id) and 0 or 2
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
  local w, expires, head = waiter_of(s, id), -1, first(s)
  if s.cut then expires = 0 elseif head and head.id == id then expires = expires_in(s) end
  local ahead = call('ZCOUNT', s.order, '0', '(' .. digits('%.0f', w.ticket))
  return { 1, s.token, expires, ahead, w.ticket, s.failed }
end
