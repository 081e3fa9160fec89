
-- Reads and checks the keys; nothing is written yet, unless a key was lost. A second result is why
-- they may not be used.
local function load(at, grows, five)
  local key, queue, order = KEYS[at], KEYS[at + 1], KEYS[at + 2]
  local record, field = call('HGETALL', key), {}
  for i = 1, #record, 2 do field[record[i]] = record[i + 1] end
  if #record > 0 and field.v ~= '1' and field.v ~= '2' then
    local version = tonumber(field.v or '')
    if version and version > 2 then return nil, 'LAYOUT ' .. field.v end
    return nil, 'FOREIGN'
  end
  local count, entries = call('ZCARD', order), call('HLEN', queue)
  -- Whoever waits behind a record that is lost may want to share the lock.
  local orphans = #record == 0 and count + entries > 0
  if not five and (field.v == '2' or orphans) then return nil, 'MODES' end
  local ok, s = pcall(read, field)
  if not ok then return nil, 'DAMAGED' end
  if orphans then s.v = 2 end
  s.key, s.queue, s.order, s.grows, s.count = key, queue, order, grows, count
  s.hash, s.due = KEYS[at + 3], KEYS[at + 4]
  if s.one then
    s.one = parse_hold(string.match(s.one, '^(%x+) (.*)$'))
    if not s.one then return nil, 'DAMAGED' end
    s.held, s.place, s.mark = 1, 1, s.one.deadline - s.one.lease
    s.out, s.of = permits(s.one.mode)
  end
  if (count > 0) ~= (entries > 0) then mend(s, entries > 0) end
  s.listed = s.count > 0 and call('ZCOUNT', order, '0', '+inf') or 0
  s.dirty = s.count + math.max(#s.holds - 1, 0) ~= s.entries
  if s.v == 2 and not s.one then mend_holds(s) end
  return s
end

-- What a holder hears of its predecessor, and of how many holds its owner lost since.
local function news(s) return s.abandoned + s.losses * 4 end

local function save_record(s)
  if s.v == 2 then
    local latest = math.max(s.last, s.ends, now)
    if s.made or latest > s.kept + HOUR then
      s.kept = math.max(s.kept, latest)
      for _, key in ipairs({ s.queue, s.order, s.hash, s.due }) do call('PEXPIRE', key, span(s)) end
    end
    return call('HSET', s.key, 'v', '2', 'o', s.owner, 't', s.token, 'e', s.last, 'u', s.used,
      'k', s.ticket, 'r', s.released, 'b', news(s), 'n', s.count, 's', s.mark, 'w', s.kept, 'a', '',
      'h', digits('%d %d %d %d %d', s.held, s.excl, s.out, s.of, s.place))
  end
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
  local rests = retention and s.last > 0 and s.last < now + BLOCK and s.held == 0
    and s.count == 0 and s.abandoned == NO
  if s.v == 2 and s.held + s.count == 0 then narrow(s) end
  if s.dirty or rests and (s.ticket + s.used > 0 or s.token < s.last) then
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
