
-- What every operation shares: a lock's state out of its keys, the rules, and back again. Nothing
-- here reads the whole queue.

local try, digits = redis.pcall, string.format
local NO, YES, UNKNOWN = 0, 1, 2
local BLOCK, TRIES, FORGET, BATCH, MAX_HOLDS, HOUR = 1024, 512, 10, 64, 10000, 3600000000
local ID = string.rep('%x', 32)

local function bit(flags, value) return flags % (value * 2) >= value end

local function flags(a, b, c) return (a and 1 or 0) + (b and 2 or 0) + (c and 4 or 0) end

-- What is kept of the hold that was released last.
local function short(id) return string.sub(id, 1, 16) end

-- A mode as it is stored: nothing for an exclusive one, ' s' for a shared one, or ' p' and the numbers
-- of permits: those that are asked for, and those that there are.
local function permits(mode)
  local count, of = string.match(mode, '^ p (%d+) (%d+)$')
  if count then return count + 0, of + 0 end
  return 0, 0
end

local function read_holds(s, field)
  if not field.i then return end
  local f = (field.f or 0) + 0
  s.holds[1] = { id = field.i, deadline = field.d + 0, lease = field.l + 0,
    client = string.match(field.c, '^%x+ .*$') .. '', polling = bit(f, 1), claim = bit(f, 2),
    mode = '' }
  for line in string.gmatch(field.x or '', '[^\n]+') do
    local id, deadline, lease, more, client =
      string.match(line, '^(%x+) (%d+) (%d+) (%d) (.*)$')
    more = more + 0
    s.holds[#s.holds + 1] = { id = id, deadline = deadline + 0, lease = lease + 0,
      client = client, polling = bit(more, 1), claim = bit(more, 2), mode = '' }
  end
  s.owner = field.o or ''
  s.held, s.excl = #s.holds, #s.holds
end

-- Raises an error when the record is damaged.
local function read(field)
  local told = (field.b or NO) + 0
  local s = { holds = {}, owner = '', token = (field.t or field.e or 0) + 0,
    last = (field.e or 0) + 0, used = (field.u or 0) + 0, ticket = (field.k or 0) + 0, released = field.r or '',
    abandoned = told % 4, losses = math.floor(told / 4), entries = (field.n or 0) + 0, failed = 0,
    v = 1, held = 0, excl = 0, out = 0, of = 0, place = 0, mark = 0, kept = 0, ends = 0 }
  if field.v ~= '2' then
    read_holds(s, field)
    return s
  end
  s.v, s.owner = 2, field.o or ''
  if (field.a or '') ~= '' then
    s.one = field.a
    return s
  end
  local held, excl, out, of, place = string.match(field.h, '^(%d+) (%d+) (%d+) (%d+) (%d+)$')
  s.held, s.excl, s.out, s.of, s.place = held + 0, excl + 0, out + 0, of + 0, place + 0
  s.mark, s.kept = field.s + 0, field.w + 0
  return s
end

local function span(s)
  local latest = math.max(s.last, s.kept, s.ends)
  for _, hold in ipairs(s.holds) do latest = math.max(latest, hold.deadline) end
  return math.floor(math.max(latest - now, 0) / 1000) + 86400000
end

-- The first write decides whether the server lets this script write at all. What makes room or
-- keeps a hold must go on when memory is full; what takes more must stop here.
local function begin(s)
  if s.begun then return end
  s.begun = true
  if s.grows then
    call('HSET', s.key, 'v', s.v)
  else
    call('PEXPIRE', s.key, span(s))
  end
end

-- A waiter; nothing when it is not there, or cannot be read.
local function waiter_of(s, id)
  local ticket, heard, f, lease, claim, silence, mode, client, owner =
    string.match(call('HGET', s.queue, id) or '',
      '^(%d+) (%d+) (%d) (%d+) (%d+) (%d+)( ?[^\n]*)\n([^\n]*)\n(.*)$')
  if not ticket then return end
  f = f + 0
  return { id = id, ticket = ticket + 0, heard = heard + 0, polling = bit(f, 1),
    parked = bit(f, 2), lease = lease + 0, claim = claim + 0, silence = silence + 0,
    mode = mode, client = client, owner = owner }
end

local function place(s, w)
  call('ZADD', s.order, w.parked and -w.ticket or w.ticket, w.id)
end

local function write(s, w)
  begin(s)
  s.queued = true
  call('HSET', s.queue, w.id, digits('%.0f %.0f %d %.0f %.0f %.0f%s\n%s\n%s', w.ticket, w.heard,
    flags(w.polling, w.parked), w.lease, w.claim, w.silence, w.mode, w.client, w.owner))
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
