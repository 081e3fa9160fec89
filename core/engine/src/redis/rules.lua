
-- 1 when somebody listens, 0 when nobody does, -1 when the store may not publish.
local function publish(s, client, payload)
  begin(s)
  local prefix, name = string.match(s.key, '^([^{]*){(.*)}$')
  local heard = try(PUBLISH, digits(INBOX, prefix, client, name), payload .. ' ' .. name)
  if type(heard) ~= 'number' then
    s.failed = 1
    return -1
  end
  return heard > 0 and 1 or 0
end

local function hold_of(s, id)
  if s.v == 2 then return hold_at(s, id) end
  for i, hold in ipairs(s.holds) do
    if hold.id == id then return hold, i end
  end
end

-- The holders with an inbox, of many the first, hear that somebody queued.
local function tell_wanted(s)
  local told, from = 0, 0
  repeat
    local holds = holds_from(s, from)
    for _, held in ipairs(holds) do
      if not held.polling and told < BATCH then
        publish(s, held.client, '1 wanted ' .. held.id)
        told = told + 1
      end
    end
    from = from + BATCH
  until told == BATCH or from >= s.held
end

local function is_live(w)
  return not w.parked and w.heard <= now and now < w.heard + w.silence
end

-- The ids of an explicit owner's entries, one after the other.
local function owned(s, owner) return call('HGET', s.queue, '=' .. owner) or '' end

local function queue_up(s, w)
  if w.mode ~= '' then widen(s) end
  s.made = s.made or s.count == 0
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
  if s.excl == 0 then vacate(s) else s.losses = s.losses + 1 end
  s.dirty = true
end

-- Nothing outlives its lease, whatever the clock did; nobody who fell silent keeps a place for
-- ever.
local function tick(s)
  unfold(s)
  local heard, unheard = false, false
  for i = #s.holds, 1, -1 do
    local hold = s.holds[i]
    if hold.deadline > now + hold.lease then
      hold.deadline = now + hold.lease
      s.dirty = true
    end
    if now >= hold.deadline then
      if hold.claim then unheard = true else heard = true end
      end_hold(s, hold, i)
    end
  end
  if s.v == 2 and s.held > 0 then
    clamp(s)
    -- Only who had the lock for itself can have left anything half done.
    for hold in overdue, s do
      end_hold(s, hold)
      if hold.mode == '' then
        if hold.claim then unheard = true else heard = true end
      end
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

-- An absent counter may have been lost with tokens given out: then a whole block is left out.
local function first_token(s, floor)
  if s.last == 0 then return math.max(now, floor) + BLOCK end
  return math.max(s.last + 1, now, floor + 1)
end

-- And a holder may have been lost with it.
local function doubt_lost(s)
  if s.last == 0 and s.abandoned == NO then s.abandoned = UNKNOWN end
end

local function reserve(s, floor)
  doubt_lost(s)
  s.token = first_token(s, floor)
  s.last = s.token + BLOCK - 1
  s.dirty = true
end

-- How a request of an explicit owner stands to what it holds: the token under which it is let in past
-- whoever waits; or nothing, and a second result where it would wait for its own hold.
local function tie(s, owner, mode)
  if owner == '' or s.held == 0 or string.sub(mode, 1, 2) == ' p' then return end
  if s.owner == owner then return s.token end
  if s.v == 1 then return end
  local token = string.match(call('HGET', s.hash, '=' .. owner) or '', '^%d+ (%d+)')
  if token and mode == '' then return nil, true end
  return token and token + 0
end

-- Whether nothing would end a wait: 8 for an explicit owner's own hold; 7 for more permits than there
-- are, and how many there are.
local function hopeless(s, w)
  local _, waits_for_itself = tie(s, w.owner, w.mode)
  if waits_for_itself then return 8, 0 end
  local count, of = permits(w.mode)
  if count > of then return 7, of end
end

-- Whether one more hold may stand beside the present ones.
local function fits(s, mode)
  if mode == '' then return s.held == 0 end
  if s.held >= MAX_HOLDS then return false end
  if mode == ' s' then return s.excl == 0 end
  local count, of = permits(mode)
  return s.out + count <= of
end

-- Numbers a hold that is let in: its token, the last one, and what it hears of its predecessor.
local function admit(s, mode, owner, floor)
  if mode == '' then
    if s.held == 0 then reserve(s, floor) end
    return s.token, s.last, news(s)
  end
  local said = NO
  if mode == ' s' then
    -- Told, and not cleared: a reader mends nothing.
    doubt_lost(s)
    said = s.abandoned
  end
  local token = tie(s, owner, mode)
  local last = token
  if not token then
    -- One number; for permits a block, where that does not outrun the clock.
    local block = mode ~= ' s' and s.last ~= 0 and s.last < now and floor < now
    token = first_token(s, floor)
    last = block and token + BLOCK - 1 or token
    s.token, s.last = token, last
  end
  s.dirty = true
  return token, last, said
end

-- The first word of a holder sets its hold's end; later ones only move it on; late copies of what
-- an earlier holder asked for leave it alone.
local function renew(s, hold, lease, polling, used, said)
  if hold.mode ~= '' then
    hold.deadline = math.max(hold.deadline, now + lease)
  elseif used > s.used and used >= s.token then
    hold.deadline, s.used = now + lease, used
  elseif s.owner ~= '' or s.used < s.token or used == s.used then
    hold.deadline = math.max(hold.deadline, now + lease)
  end
  hold.lease = hold.deadline - now
  hold.claim, hold.polling, hold.client = false, polling, with_count(hold.client, said)
  if s.v == 2 then put_hold(s, hold) end
  s.dirty = true
end

-- Grants to a waiter; 1 when nobody heard of it, and it is parked.
local function serve(s, w, caller, floor)
  local token, last, abandoned = s.token, s.last, s.abandoned
  local first, ended, said = admit(s, w.mode, w.owner, floor)
  local called = w.id == caller
  if not called and not w.polling then
    local listeners = publish(s, w.client, '1 granted ' .. w.id .. ' '
      .. digits('%.0f %.0f %d %d', first, ended, said, s.listed - 1))
    if listeners == 0 then
      s.token, s.last, s.abandoned = token, last, abandoned
      park(s, w)
      return 1
    end
  end
  leave(s, w)
  if w.mode == '' then s.owner = w.owner end
  add_hold(s, w, first, called and w.lease or math.min(w.claim, w.lease), not called)
  return 0
end

-- The live waiters of an explicit owner, in their order.
local function live_of(s, owner)
  local own = {}
  if s.count == 0 then return own end
  for id in string.gmatch(owned(s, owner), ID) do
    local w = waiter_of(s, id)
    if w and is_live(w) then own[#own + 1] = w end
  end
  table.sort(own, function(a, b)
    return a.ticket < b.ticket or a.ticket == b.ticket and a.id < b.id
  end)
  return own
end

-- The next waiter of the explicit owner who has the lock for itself, or of one who shares it and was
-- let in just now, or calls: its others join it. `lists` remembers whose were looked for.
local function next_own(s, sharer, lists)
  local owner, any = s.owner, true
  if owner == '' or s.held == 0 then
    owner, any = sharer, false
    if owner == '' or not tie(s, owner, ' s') then return end
  end
  lists[owner] = lists[owner] or live_of(s, owner)
  for i, w in ipairs(lists[owner]) do
    if any or w.mode == ' s' then return table.remove(lists[owner], i) end
  end
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

-- How many permits those say who hold or wait, 0 for a lock's; nothing where nobody does.
local function kind_of(s)
  if s.held > 0 then return s.of end
  if s.count == 0 then return end
  if s.v == 1 then return 0 end
  local id = call('ZRANGEBYSCORE', s.order, '0', '+inf', 'LIMIT', '0', '1')[1]
    or call('ZREVRANGEBYSCORE', s.order, '(0', '-inf', 'LIMIT', '0', '1')[1]
  local w = id and waiter_of(s, id)
  if not w then return end
  local _, of = permits(w.mode)
  return of
end

-- Whether somebody of another kind holds or waits: the number of permits that they say, 0 for a lock's.
-- Entries of another kind that are silent go.
local function other_kind(s, mode)
  local _, asked = permits(mode)
  local of = kind_of(s)
  if not of or of == asked then return end
  if s.held > 0 then return digits('%d', of) end
  for from = 0, s.listed, BATCH do
    for _, id in ipairs(call('ZRANGEBYSCORE', s.order, '0', '+inf', 'LIMIT', from, BATCH)) do
      local w = waiter_of(s, id)
      if w and is_live(w) then return digits('%d', of) end
    end
  end
  begin(s)
  call('DEL', s.queue, s.order)
  s.count, s.listed, s.dirty = 0, 0, true
end

-- Lets in those live waiters at the head who fit, one after the other, and all live waiters of an
-- explicit owner who is let in; nobody passes one who does not fit. Whoever is found silent at the head
-- is parked, so that the first one is known to live.
local function settle(s, caller, floor)
  if now >= 9006099743113216 then return end
  local tries, room, taken, lists = TRIES, BATCH, s.excl > 0, {}
  local calls = caller and s.v == 2 and waiter_of(s, caller)
  local sharer = calls and calls.owner or ''
  while tries > 0 and room > 0 do
    local w, silent = next_own(s, sharer, lists), false
    if not w then
      -- After the lock was granted to one alone, only its owner's others are of interest.
      if not taken and s.excl > 0 then break end
      w = first(s)
      if not w then break end
      silent = not is_live(w) or hopeless(s, w)
      if not silent and not fits(s, w.mode) then break end
    end
    if silent then
      park(s, w)
      tries = tries - 1
    elseif serve(s, w, caller, floor) > 0 then
      tries = tries - 1
    else
      if w.id ~= caller and s.excl == 0 then room = room - 1 end
      if w.owner ~= '' then sharer = w.owner end
    end
  end
  s.cut = tries == 0 and s.held == 0
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
    end_hold(s, hold, at)
    s.released = short(id)
    s.dirty = true
    -- A reader was told of its predecessor, and has mended nothing.
    if hold.mode ~= '' then return told and 0 or 1 end
    if lost then
      lose(s, YES)
    elseif told and used >= s.token and losses == s.losses then
      -- Not when a repeated release meets a late copy of its own acquire, granted for nobody.
      s.abandoned = NO
    end
    if s.excl == 0 then
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

-- The last of the holds; of permits the first, which may be enough.
local function expires_in(s)
  if s.v == 2 then return deadline_of(s, s.of > 0) - now end
  local latest = now - 1
  for _, hold in ipairs(s.holds) do latest = math.max(latest, hold.deadline) end
  return latest - now
end

local function standing(s, id)
  local hold = hold_of(s, id)
  if hold then
    local token, last, said = s.token, s.last, news(s)
    if hold.mode ~= '' then
      -- The block of the newest permits is the one that was reserved last.
      token = hold.token
      last = hold.mode ~= ' s' and token == s.token and s.last or token
      said = hold.mode == ' s' and s.abandoned or NO
    end
    return { 0, token, last, hold.deadline - now, said, others(s, id), s.failed }
  end
  local w, expires, head = waiter_of(s, id), -1, first(s)
  if s.cut then expires = 0 elseif head and head.id == id then expires = expires_in(s) end
  local ahead = call('ZCOUNT', s.order, '0', '(' .. digits('%.0f', w.ticket))
  return { 1, s.token, expires, ahead, w.ticket, s.failed }
end

-- Ends a wait that is hopeless.
local function end_wait(s, w, floor, standing, of)
  if w then leave(s, w) end
  settle(s, nil, floor)
  return { standing, s.token, -1, 0, of, s.failed }
end
