package io.fencelock.bench;

import io.fencelock.DistributedLock;
import io.fencelock.DistributedReadWriteLock;
import io.fencelock.DistributedSemaphore;
import io.fencelock.FencelockClient;
import io.fencelock.Permit;
import io.lettuce.core.RedisClient;
import io.lettuce.core.ScriptOutputType;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.api.sync.RedisCommands;
import java.net.URI;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.BiFunction;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.LongConsumer;
import java.util.function.LongFunction;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RPermitExpirableSemaphore;
import org.redisson.api.RReadWriteLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.params.SetParams;

/** A library, connected. A mutex of it is used by one thread, unless it is said to be shared. */
record Side(
        Function<String, Mutex> mutexes,
        Function<String, Pair> pairs,
        BiFunction<String, Integer, Mutex> permits,
        Runnable closing)
        implements AutoCloseable {
    /** The sides of a read-write lock. */
    record Pair(Mutex reader, Mutex writer) {}

    private Side(Function<String, Mutex> mutexes, Runnable closing) {
        this(mutexes, null, null, closing);
    }

    /** The least that a lock with a fencing token can do: no queue, no re-entry, no renewal. */
    private static final String LOCK =
            "if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', 30000) then"
                    + " return redis.call('INCR', KEYS[2]) end return 0";

    private static final String UNLOCK =
            "if redis.call('GET', KEYS[1]) == ARGV[1] then"
                    + " return redis.call('DEL', KEYS[1]) end return 0";

    /** What the URL of a cluster begins with, here as for ours. */
    private static final String CLUSTER = "redis+cluster://";

    static Side open(String name, String url) {
        return switch (name) {
            case "fencelock" -> fencelock(url);
            case "fencelock-memory" -> fencelock("memory:bench");
            case "reentrant-fair" -> {
                Map<String, Lock> locks = new ConcurrentHashMap<>();
                yield new Side(
                        key -> of(locks.computeIfAbsent(key, any -> new ReentrantLock(true))),
                        () -> {});
            }
            case "redisson-lock" -> redisson(url, client -> client::getLock);
            case "redisson-fair" -> redisson(url, client -> client::getFairLock);
            case "redisson-fenced" -> redisson(url, client -> client::getFencedLock);
            case "redisson-read-write" -> redissonReadWrite(url);
            case "redisson-permits" -> redissonPermits(url);
            case "jedis" -> new Side(key -> jedis(url, key), () -> {});
            case "jedis-bare" -> new Side(key -> bare(url, key), () -> {});
            case "lettuce" -> lettuce(url);
            default -> throw new IllegalArgumentException(name);
        };
    }

    Mutex mutex(String key) {
        return mutexes.apply(key);
    }

    @Override
    public void close() {
        closing.run();
    }

    /** A lock of Java's kind, with what else its library can do. */
    private record Native(
            Lock plain, LongConsumer leasing, LongFunction<CompletionStage<?>> asking)
            implements Mutex {
        @Override
        public void lock() {
            plain.lock();
        }

        @Override
        public void lock(long lease) {
            leasing.accept(lease);
        }

        @Override
        public void unlock() {
            plain.unlock();
        }

        @Override
        public CompletionStage<?> ask(long caller) {
            return asking.apply(caller);
        }
    }

    private static Mutex of(Lock lock) {
        return new Mutex() {
            @Override
            public void lock() {
                lock.lock();
            }

            @Override
            public void unlock() {
                lock.unlock();
            }
        };
    }

    private static Side fencelock(String url) {
        FencelockClient client = FencelockClient.connect(url);
        return new Side(
                key -> {
                    DistributedLock lock = client.lock(key);
                    return new Native(
                            lock,
                            lease -> lock.withLease(Duration.ofMillis(lease)).lock(),
                            caller -> lock.acquireAsync());
                },
                key -> {
                    DistributedReadWriteLock lock = client.readWriteLock(key);
                    return new Pair(of(lock.readLock()), of(lock.writeLock()));
                },
                (key, of) -> {
                    DistributedSemaphore semaphore = client.semaphore(key, of);
                    return of(() -> semaphore.acquireUninterruptibly(1), Permit::close);
                },
                client::close);
    }

    /** A mutex of what gives something to give back. */
    private static <T> Mutex of(Supplier<T> taking, Consumer<T> giving) {
        return new Mutex() {
            private T held;

            @Override
            public void lock() {
                held = taking.get();
            }

            @Override
            public void unlock() {
                giving.accept(held);
            }
        };
    }

    private static Side redissonReadWrite(String url) {
        RedissonClient client = connect(url);
        return new Side(
                any -> {
                    throw new UnsupportedOperationException();
                },
                key -> {
                    RReadWriteLock lock = client.getReadWriteLock("redisson/" + key);
                    return new Pair(of(lock.readLock()), of(lock.writeLock()));
                },
                null,
                client::shutdown);
    }

    private static Side redissonPermits(String url) {
        RedissonClient client = connect(url);
        return new Side(
                any -> {
                    throw new UnsupportedOperationException();
                },
                null,
                (key, of) -> {
                    RPermitExpirableSemaphore semaphore =
                            client.getPermitExpirableSemaphore("redisson/" + key);
                    semaphore.trySetPermits(of);
                    return of(() -> taken(semaphore), semaphore::release);
                },
                client::shutdown);
    }

    private static String taken(RPermitExpirableSemaphore semaphore) {
        try {
            return semaphore.acquire(30, TimeUnit.SECONDS);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    private static RedissonClient connect(String url) {
        Config config = new Config();
        if (url.startsWith(CLUSTER)) {
            Stream.of(url.substring(CLUSTER.length()).split(","))
                    .forEach(node -> config.useClusterServers().addNodeAddress("redis://" + node));
        } else {
            config.useSingleServer().setAddress(url);
        }
        return Redisson.create(config);
    }

    private static Side redisson(
            String url, Function<RedissonClient, Function<String, ? extends RLock>> kind) {
        RedissonClient client = connect(url);
        Function<String, ? extends RLock> locks = kind.apply(client);
        return new Side(
                key -> {
                    RLock lock = locks.apply("redisson/" + key);
                    return new Native(
                            lock,
                            lease -> lock.lock(lease, TimeUnit.MILLISECONDS),
                            lock::lockAsync);
                },
                client::shutdown);
    }

    /** The least that can be called a lock; a connection for each thread. */
    private static Mutex bare(String url, String key) {
        Jedis jedis = new Jedis(URI.create(url));
        String name = "bare/" + key;
        return new Mutex() {
            @Override
            public void lock() {
                lock(30_000);
            }

            @Override
            public void lock(long lease) {
                SetParams ifFree = SetParams.setParams().nx().px(lease);
                while (jedis.set(name, "held", ifFree) == null) {
                    LockSupport.parkNanos(1_000_000);
                }
            }

            @Override
            public void unlock() {
                jedis.del(name);
            }
        };
    }

    /** A connection for each thread, as Jedis has it. */
    private static Mutex jedis(String url, String key) {
        Jedis jedis = new Jedis(URI.create(url));
        String lock = jedis.scriptLoad(LOCK);
        String unlock = jedis.scriptLoad(UNLOCK);
        List<String> keys = List.of("{jedis/" + key + "}", "{jedis/" + key + "}:token");
        List<String> owner = List.of(UUID.randomUUID().toString());
        return new Mutex() {
            @Override
            public void lock() {
                expect(jedis.evalsha(lock, keys, owner));
            }

            @Override
            public void unlock() {
                expect(jedis.evalsha(unlock, keys, owner));
            }
        };
    }

    /** One connection for all threads, as Lettuce has it. */
    private static Side lettuce(String url) {
        RedisClient client = RedisClient.create(url);
        StatefulRedisConnection<String, String> connection = client.connect();
        RedisCommands<String, String> redis = connection.sync();
        String lock = redis.scriptLoad(LOCK);
        String unlock = redis.scriptLoad(UNLOCK);
        return new Side(
                key -> {
                    String[] keys = {"{lettuce/" + key + "}", "{lettuce/" + key + "}:token"};
                    String owner = UUID.randomUUID().toString();
                    return new Mutex() {
                        @Override
                        public void lock() {
                            expect(redis.evalsha(lock, ScriptOutputType.INTEGER, keys, owner));
                        }

                        @Override
                        public void unlock() {
                            expect(redis.evalsha(unlock, ScriptOutputType.INTEGER, keys, owner));
                        }
                    };
                },
                client::shutdown);
    }

    private static void expect(Object reply) {
        if (!(reply instanceof Long number) || number == 0) {
            throw new IllegalStateException("somebody else has the lock: " + reply);
        }
    }
}
