-- Before what may give a vote, at a server of a quorum. The last key is the marker; the last arguments are the run and
-- the birth that the client was told, and from when on such a server gives votes: one that forgot, or has another's
-- memory, is another server. Of an answer that gives no new vote there is no such time.
do
  local from, birth, run = table.remove(arg), table.remove(arg), table.remove(arg)
  local marker = call('HMGET', table.remove(KEYS), 'run', 'birth')
  if marker[1] ~= run or marker[2] ~= birth then return { err = 'UNBORN' } end
  if now < from + 0 then return { err = 'YOUNG ' .. math.ceil((from - now) / 1000) .. ' ms' } end
end

