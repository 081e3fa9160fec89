
local try, digits = redis.pcall, string.format

-- Who is to be served first, unless it was found silent: id, lease, claim, client, owner, polling,
-- ticket.
local function head(queue, order)
  local id = call('ZRANGEBYSCORE', order, '0', '+inf', 'LIMIT', '0', '1')[1]
  local ticket, heard, polling, lease, claim, silence, client, owner =
    string.match(id and call('HGET', queue, id) or '',
      '^(%d+) (%d+) ([01]) (%d+) (%d+) (%d+)\n([^\n]*)\n(.*)$')
  heard = heard and heard + 0
  if heard and heard <= now and now < heard + silence then
    return id, lease, claim, client, owner, polling, ticket + 0
  end
end
