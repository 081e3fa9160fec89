
-- Resize: how many permits there are for those who hold or wait. KEYS: all five. ARGV: the number.
local s, refused = load(1, false, KEYS[5])
if not s then return { err = refused } end
tick(s)
local of = kind_of(s)
if of == 0 then
  save(s)
  return { err = 'KIND 0' }
end
local function resized(mode)
  local count = permits(mode)
  return digits(' p %d %d', count, arg[1])
end
if of then
  s.of = arg[1] + 0
  for _, hold in ipairs(all_holds(s)) do
    hold.mode = resized(hold.mode)
    put_hold(s, hold)
  end
  for _, id in ipairs(call('HKEYS', s.queue)) do
    local w = waiter_of(s, id)
    if w then
      w.mode = resized(w.mode)
      write(s, w)
    end
  end
  settle(s, nil, 0)
end
save(s)
return { now, of and 1 or 0 }
