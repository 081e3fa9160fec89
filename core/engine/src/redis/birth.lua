-- Since when a server of a quorum has remembered what it said. KEYS: the marker. ARGV: the run of the server, as INFO has it;
-- the fingerprint of what all clients must agree on; and, on an operator's word, how many microseconds ago it was,
-- whatever is there. Gives the time, the fingerprint that is there, and the birth.
local call, key = redis.call, KEYS[1]
local time = call('TIME')
local now = time[1] * 1000000 + time[2]
local marker = call('HMGET', key, 'run', 'birth', 'list')
local run, birth, list = marker[1], marker[2], marker[3]
if ARGV[3] then
  birth = string.format('%.0f', now - ARGV[3])
  call('HSET', key, 'run', ARGV[1], 'birth', birth, 'list', ARGV[2])
elseif list and list ~= ARGV[2] then
  return { now, list, birth or '0' }
elseif not list or run ~= ARGV[1] or not tonumber(birth) or birth + 0 > now then
  birth = string.format('%.0f', now)
  call('HSET', key, 'run', ARGV[1], 'birth', birth, 'list', ARGV[2])
end
return { now, ARGV[2], birth }
