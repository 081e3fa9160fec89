-- Inspect: both keys as they are. KEYS: record, queue.
local time = redis.call('TIME')
return { time[1] * 1000000 + time[2], redis.call('HGETALL', KEYS[1]),
  redis.call('HGETALL', KEYS[2]) }
