"""A value in Redis that refuses a write whose fencing token is older than one it has seen.

The check and the write are one script, which Redis runs as one step. Tokens stay below 2**53, so
Lua's numbers hold them. `python fenced_redis.py redis://host`
"""

from __future__ import annotations

import sys

import redis

import fencelock

WRITE = """
local seen = tonumber(redis.call('HGET', KEYS[1], 'token') or '0')
if tonumber(ARGV[2]) < seen then return 0 end
redis.call('HSET', KEYS[1], 'value', ARGV[1], 'token', ARGV[2])
return 1
"""


def write(server: redis.Redis, key: str, value: str, token: int) -> bool:
    """Write a value under a token; False when a later holder has written already."""
    return bool(server.eval(WRITE, 1, key, value, token))


def main(url: str) -> list[bool]:
    """Let a holder that was paused too long write after its successor."""
    client, other = fencelock.connect(url), fencelock.connect(url)
    with redis.Redis.from_url(url) as server:
        paused = client.lock("stock/coupon-7", lease=0.2).hold()
        # The lease ends while this holder does nothing, and another gets the lock.
        with other.lock("stock/coupon-7") as hold:
            written = [write(server, "coupon-7", "99 left", hold.token)]
        # It wakes up and does not know yet: Redis does.
        written.append(write(server, "coupon-7", "100 left", paused.token))
    client.close()
    other.close()
    return written


if __name__ == "__main__":
    first, late = main(sys.argv[1])
    print("the holder wrote:", first)
    print("the one that came too late wrote:", late)
