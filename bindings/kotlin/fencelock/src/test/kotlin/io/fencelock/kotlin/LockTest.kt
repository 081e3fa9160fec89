package io.fencelock.kotlin

import java.util.concurrent.atomic.AtomicInteger
import kotlin.time.Duration.Companion.milliseconds
import kotlin.time.Duration.Companion.seconds
import kotlinx.coroutines.async
import kotlinx.coroutines.awaitAll
import kotlinx.coroutines.launch
import kotlinx.coroutines.yield
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertFalse
import org.junit.jupiter.api.Assertions.assertNotEquals
import org.junit.jupiter.api.Assertions.assertNull
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Assumptions.assumeTrue
import org.junit.jupiter.params.ParameterizedTest
import org.junit.jupiter.params.provider.MethodSource

internal class LockTest {
    @ParameterizedTest
    @MethodSource("io.fencelock.kotlin.Stores#all")
    fun `acquires and releases`(url: String) = withClient(url) { client ->
        val lock = client.lock(fresh())
        assertFalse(lock.isLocked())
        val first = lock.acquire()
        assertTrue(first.isValid && first.remaining > 1.seconds && !first.isReentry)
        assertEquals(first.token, first.check())
        assertEquals(lock.name, first.name)
        assertTrue(lock.isLocked())
        assertNull(lock.tryAcquire())
        first.release()
        val second = lock.tryAcquire()!!
        assertTrue(second.token > first.token)
        assertEquals(Abandoned.NO, second.previousAbandoned)
        second.release()
        assertFalse(lock.isLocked())
        thrown<FencelockException.NotHeld> { second.release() }
    }

    @ParameterizedTest
    @MethodSource("io.fencelock.kotlin.Stores#all")
    fun `a hundred coroutines exclude each other`(url: String) = withClient(url) { client ->
        Client.connect(url).use { other ->
            val name = fresh()
            val inside = AtomicInteger()
            var count = 0
            var last = 0L
            val jobs =
                List(100) { number ->
                    launch {
                        (if (number % 2 == 0) client else other).lock(name).withLock { hold ->
                            assertEquals(1, inside.incrementAndGet())
                            assertTrue(hold.token > last)
                            last = hold.token
                            val before = count
                            yield()
                            count = before + 1
                            inside.decrementAndGet()
                        }
                    }
                }
            jobs.forEach { it.join() }
            assertEquals(100, count)
            eventuallyEmpty(client, name)
        }
    }

    @ParameterizedTest
    @MethodSource("io.fencelock.kotlin.Stores#all")
    fun `waiters are served in their order`(url: String) = withClient(url) { client ->
        val lock = client.lock(fresh())
        val hold = lock.acquire()
        val order = mutableListOf<Int>()
        val waiters =
            List(5) { number ->
                launch { lock.withLock { order.add(number) } }.also { eventuallyWaiting(client, number + 1) }
            }
        hold.release()
        waiters.forEach { it.join() }
        assertEquals(List(5) { it }, order)
    }

    @ParameterizedTest
    @MethodSource("io.fencelock.kotlin.Stores#all")
    fun `a bounded wait ends`(url: String) = withClient(url) { client ->
        val lock = client.lock(fresh())
        lock.withLock {
            val late = thrown<FencelockException.TimedOut> { lock.acquire(timeout = 20.milliseconds) }
            assertTrue(late.isRetryable)
            assertEquals(2, late.code)
        }
        assertEquals("in time", lock.withLock(timeout = BOUND) { "in time" })
    }

    @ParameterizedTest
    @MethodSource("io.fencelock.kotlin.Stores#all")
    fun `what the block throws comes out, and the lock is free`(url: String) = withClient(url) { client ->
        val lock = client.lock(fresh())
        val failed = thrown<IllegalStateException> { lock.withLock { error("of the block") } }
        assertEquals("of the block", failed.message)
        lock.withLock { hold -> hold.release() }
        lock.acquire(timeout = BOUND).use { assertTrue(it.isValid) }
        lock.acquire(timeout = BOUND).release()
    }

    @ParameterizedTest
    @MethodSource("io.fencelock.kotlin.Stores#all")
    fun `an owner enters again`(url: String) = withClient(url) { client ->
        val owner = Owner.create()
        val lock = client.lock(fresh(), owner = owner)
        lock.withLock { outer ->
            lock.withLock { inner ->
                assertTrue(inner.isReentry && !outer.isReentry)
                assertEquals(outer.token, inner.token)
                assertEquals(2, lock.holdCount)
            }
            assertTrue(outer.isValid)
            assertNull(client.lock(lock.name, owner = Owner.create()).tryAcquire())
            assertNull(client.lock(lock.name).tryAcquire())
        }
        assertFalse(lock.isLocked())
        assertEquals(owner, owner)
        assertNotEquals(owner, Owner.create())
        assertEquals(Owner.of("a"), Owner.of("a"))
    }

    @ParameterizedTest
    @MethodSource("io.fencelock.kotlin.Stores#all")
    fun `a ticket goes on with a hold`(url: String) = withClient(url) { client ->
        val lock = client.lock(fresh(), owner = Owner.of(fresh()))
        val hold = lock.acquire()
        val joined = client.attach(hold.ticket())
        assertEquals(hold.token, joined.token)
        hold.release()
        assertTrue(joined.isValid && lock.isLocked())
        joined.release()
        assertFalse(lock.isLocked())
        thrown<FencelockException.InvalidArgument> { client.attach("no ticket") }
        client.lock(fresh()).withLock { thrown<FencelockException.InvalidArgument> { it.ticket() } }
    }

    @ParameterizedTest
    @MethodSource("io.fencelock.kotlin.Stores#all")
    fun `is looked at`(url: String) = withClient(url) { client ->
        val lock = client.lock(fresh())
        assertNull(client.inspect(lock.name))
        val hold = lock.acquire()
        Client.connect(url).use { other ->
            val waiting = async { other.lock(lock.name).acquire() }
            eventually("a waiter is seen") { client.inspect(lock.name)?.waiters?.size == 1 }
            val info = client.inspect(lock.name)!!
            assertEquals(listOf(client.id), info.holds.map { it.clientId })
            assertEquals(listOf(other.id), info.waiters.map { it.clientId })
            assertEquals(hold.token, info.token.toLong())
            val within = List(2) { async { client.lock(lock.name).acquire() } }
            eventually("they wait, too") { client.inspect(lock.name)?.waiting == 3u }
            assertEquals(2u, client.inspect(lock.name)!!.holds.single().localWaiters)
            assertEquals(listOf(lock.name), client.list(lock.name))
            hold.release()
            (within + waiting).map { async { it.await().release() } }.awaitAll()
        }
        assertTrue(client.ping().isAfter(java.time.Instant.EPOCH))
        assertTrue(url.startsWith(client.capabilities.store.take(2)) || url.startsWith("zk"))
    }

    @ParameterizedTest
    @MethodSource("io.fencelock.kotlin.Stores#all")
    fun `a lease ends, and can be made longer`(url: String) = withClient(url) { client ->
        assumeTrue(client.capabilities.leases, "the store has no leases of holds")
        val lock = client.lock(fresh(), lease = 30.seconds)
        lock.withLock { hold ->
            hold.extend(60.seconds)
            assertTrue(hold.remaining > 40.seconds)
            hold.extend(1.seconds)
            assertTrue(hold.remaining > 40.seconds, "never shorter")
        }
        val short = client.lock(lock.name, lease = 200.milliseconds).acquire()
        assertEquals(LossReason.ENDED, short.lost.await())
        assertFalse(short.isValid)
        assertEquals(Abandoned.YES, lock.withLock(timeout = BOUND) { it.previousAbandoned })
    }

    @ParameterizedTest
    @MethodSource("io.fencelock.kotlin.Stores#all")
    fun `clients in parallel are in order`(url: String) = withClient(url) { client ->
        val counts =
            List(4) {
                    async {
                        Client.connect(url).use { own ->
                            List(10) { own.lock("kotlin/parallel").withLock { hold -> hold.token } }
                        }
                    }
                }
                .awaitAll()
        counts.forEach { tokens -> assertEquals(tokens.sorted(), tokens) }
        assertEquals(40, counts.flatten().toSet().size)
        eventuallyEmpty(client, "kotlin/parallel")
    }
}
