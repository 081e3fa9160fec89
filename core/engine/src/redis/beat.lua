
-- Beat: the others.
local function beat_slowly(i)
  local s, refused = load((i - 1) * each + 1, false, each >= 5)
  if not s then return refused end
  local at = i * 4 - 1
  local id = arg[at]
  local waiter, newcomer = hear(s, id, polling == 1, arg[at + 3] + 0, count_of(i))
  tick(s)
  local held = hold_of(s, id)
  if held then
    local used = arg[at + 2] + 0
    renew(s, held, arg[at + 1] + 0, polling == 1, used, count_of(i))
    if held.mode == '' then s.last = math.max(s.last, now, used + BLOCK) end
  end
  if waiter then
    local standing, of = hopeless(s, waiter)
    if standing then
      local state = end_wait(s, waiter, 0, standing, of)
      save(s)
      return state
    end
  end
  settle(s, waiter and id, 0)
  if newcomer and not hold_of(s, id) then tell_wanted(s) end
  local state
  if held or waiter then
    state = standing(s, id)
  else
    state = { s.released == short(id) and 4 or 5, s.token, -1, 0, 0, s.failed }
  end
  save(s)
  return state
end

for _, i in ipairs(left) do
  local ok, answer = pcall(beat_slowly, i)
  -- Redis 6 raises errors as text, later ones as tables.
  if not ok and type(answer) == 'table' then answer = answer.err end
  answers[i + 1] = answer
end
return answers
