
-- How many share the lock, how many permits they have, of how many, and the newest one's place. Nothing
-- where somebody waits or has it alone, a hold is over, the clock went back, or the keys are to be kept
-- for longer. `one` is the only hold, where it stands in the record.
local digits = string.format
local function together(layout, waiting, one, numbers, mark, kept, due)
  if layout ~= '2' or waiting and waiting ~= '0' then return end
  if one and one ~= '' then
    local ends, lease, count, all =
      string.match(one, '^%x+ (%d+) (%d+) %d %d+ 1 [sp] ?(%d*) ?(%d*)\n')
    if ends + 0 <= now or ends - lease > now then return end
    return 1, count == '' and 0 or count + 0, all == '' and 0 or all + 0, 1
  end
  local held, out, of, place = string.match(numbers or '', '^([1-9]%d*) 0 (%d+) (%d+) (%d+)$')
  if held and mark + 0 <= now and now <= kept + 3600000000
    and call('ZCOUNT', due, digits('(%.0f', now), '+inf') == held + 0 then
    return held + 0, out + 0, of + 0, place + 0
  end
end
