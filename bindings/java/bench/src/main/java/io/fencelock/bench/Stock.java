package io.fencelock.bench;

import io.fencelock.bench.Callers.Tally;
import io.fencelock.bench.Callers.Work;
import java.net.URI;
import java.util.List;
import redis.clients.jedis.Jedis;

/** What is for sale, as one caller sees it over a connection of his own. */
record Stock(Jedis redis) {
    private static final String KEY = "bench:stock";

    private static final String TAKE =
            "if tonumber(redis.call('GET', KEYS[1])) < 1 then return 0 end"
                    + " redis.call('DECR', KEYS[1]) return 1";

    static Stock at(String url) {
        return new Stock(new Jedis(URI.create(url)));
    }

    /** Sells one after the other, each under the lock. */
    Work under(Mutex mutex) {
        return began -> {
            for (long sold = 0; ; sold++) {
                mutex.lock();
                long left = Long.parseLong(redis.get(KEY));
                if (left > 0) {
                    redis.set(KEY, String.valueOf(left - 1));
                }
                mutex.unlock();
                if (left <= 0) {
                    return new Tally(sold, 0);
                }
            }
        };
    }

    /** Sells without a lock, each in one script. */
    Work free() {
        String take = redis.scriptLoad(TAKE);
        return began -> {
            long sold = 0;
            while ((Long) redis.evalsha(take, List.of(KEY), List.of()) == 1) {
                sold++;
            }
            return new Tally(sold, 0);
        };
    }
}
