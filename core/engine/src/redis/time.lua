local call, key, arg = redis.call, KEYS[1], ARGV
local time = call('TIME')
local now = time[1] * 1000000 + time[2]
