
-- Beat: waiters, and holds that others wait for or share.
local function beat(i)
  local s, refused = load(KEYS[i * 2 - 1], KEYS[i * 2], false)
  if not s then return refused end
  local id = arg[i * 3]
  local waiter = hear(s, id, polling == 1)
  tick(s)
  local hold = hold_of(s, id)
  if hold then
    renew(s, hold, arg[i * 3 + 1] + 0, polling == 1)
    s.last = math.max(s.last, now, arg[i * 3 + 2] + BLOCK)
  end
  settle(s, waiter and id, 0)
  local state
  if hold or waiter then
    state = standing(s, id)
  else
    state = { s.released == id and 4 or 5, s.token, -1, 0, 0, 0, s.failed }
  end
  save(s)
  return state
end

for _, i in ipairs(left) do
  local ok, answer = pcall(beat, i)
  -- Redis 6 raises errors as text, later ones as tables.
  if not ok and type(answer) == 'table' then answer = answer.err end
  answers[i + 1] = answer
end
return answers
