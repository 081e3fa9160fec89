package io.fencelock.kotlin

import java.util.concurrent.atomic.AtomicInteger
import kotlin.time.Duration.Companion.milliseconds
import kotlin.time.Duration.Companion.seconds
import kotlinx.coroutines.async
import kotlinx.coroutines.launch
import kotlinx.coroutines.yield
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertFalse
import org.junit.jupiter.api.Assertions.assertNotNull
import org.junit.jupiter.api.Assertions.assertNull
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Assumptions.assumeTrue
import org.junit.jupiter.params.ParameterizedTest
import org.junit.jupiter.params.provider.MethodSource

internal class ModesTest {
    @ParameterizedTest
    @MethodSource("io.fencelock.kotlin.Stores#all")
    fun `readers are in together and a writer is alone`(url: String) = withClient(url) { client ->
        assumeTrue(client.capabilities.shared, "the store has no read-write locks")
        val lock = client.rwLock(fresh())
        Client.connect(url).use { other ->
            val elsewhere = other.rwLock(lock.name)
            lock.withReadLock { first ->
                elsewhere.withReadLock(timeout = BOUND) { second ->
                    lock.withReadLock(timeout = BOUND) { third ->
                        assertTrue(first.isValid && second.isValid && third.isValid)
                        assertNull(lock.writer.tryAcquire())
                        assertNull(elsewhere.writer.tryAcquire())
                        assertNull(client.lock(lock.name).tryAcquire())
                        val holds = client.inspect(lock.name)!!.holds
                        assertTrue(holds.isNotEmpty() && holds.all { it.mode == HoldMode.SHARED })
                    }
                }
            }
            val read = lock.withReadLock { it.token }
            val written = elsewhere.withWriteLock { writer ->
                assertNull(lock.reader.tryAcquire())
                val late = thrown<FencelockException.TimedOut> { lock.withReadLock(timeout = 20.milliseconds) {} }
                assertTrue(late.isRetryable)
                writer.token
            }
            assertTrue(read < written && written < lock.withReadLock { it.token })
            eventuallyEmpty(client, lock.name)
        }
    }

    @ParameterizedTest
    @MethodSource("io.fencelock.kotlin.Stores#all")
    fun `a reader does not pass a writer who waits`(url: String) = withClient(url) { client ->
        assumeTrue(client.capabilities.shared, "the store has no read-write locks")
        val lock = client.rwLock(fresh())
        val order = mutableListOf<String>()
        val first = lock.reader.acquire()
        val writer = launch { lock.withWriteLock { order.add("writer") } }
        eventuallyWaiting(client, 1)
        assertNull(lock.reader.tryAcquire())
        val reader = launch { lock.withReadLock { order.add("reader") } }
        eventuallyWaiting(client, 2)
        first.release()
        writer.join()
        reader.join()
        assertEquals(listOf("writer", "reader"), order)
    }

    @ParameterizedTest
    @MethodSource("io.fencelock.kotlin.Stores#all")
    fun `an owner that reads cannot write, and one that writes can read`(url: String) = withClient(url) { client ->
        assumeTrue(client.capabilities.shared, "the store has no read-write locks")
        val lock = client.rwLock(fresh(), owner = Owner.create())
        lock.withReadLock { outer ->
            val told = thrown<FencelockException.WouldDeadlock> { lock.withWriteLock {} }
            assertEquals(11, told.code)
            // Past a writer who waits.
            val waiting = async { client.lock(lock.name).acquire() }
            eventuallyWaiting(client, 1)
            lock.withReadLock(timeout = BOUND) { inner -> assertEquals(outer.token, inner.token) }
            waiting.cancel()
            waiting.join()
        }
        lock.withWriteLock { outer ->
            lock.withReadLock { inner -> assertTrue(inner.isReentry && inner.token == outer.token) }
            lock.withWriteLock { inner -> assertEquals(outer.token, inner.token) }
        }
        eventuallyEmpty(client, lock.name)
    }

    @ParameterizedTest
    @MethodSource("io.fencelock.kotlin.Stores#all")
    fun `a reader is told of its loss, and it alone`(url: String) = withClient(url) { client ->
        assumeTrue(client.capabilities.shared, "the store has no read-write locks")
        assumeTrue(client.capabilities.leases, "the store has no leases of holds")
        val name = fresh()
        val kept = client.rwLock(name).reader.acquire()
        val short = client.rwLock(name, lease = 200.milliseconds).reader.acquire()
        assertEquals(LossReason.ENDED, short.lost.await())
        assertTrue(kept.isValid && !short.isValid)
        thrown<FencelockException.Lost> { short.release() }
        kept.release()
        assertTrue(client.rwLock(name).withWriteLock(timeout = BOUND) { it.previousAbandoned } != Abandoned.YES)
    }

    @ParameterizedTest
    @MethodSource("io.fencelock.kotlin.Stores#all")
    fun `a writer reads on, and a lone reader writes`(url: String) = withClient(url) { client ->
        assumeTrue(client.capabilities.shared && client.capabilities.store != "zookeeper", "it upgrades nobody")
        Client.connect(url).use { other ->
            val lock = client.rwLock(fresh())
            val hold = lock.writer.acquire()
            val written = hold.token
            val reading = async { other.rwLock(lock.name).reader.acquire() }
            eventuallyWaiting(other, 1)
            hold.downgrade()
            val beside = reading.await()
            assertTrue(written < hold.token && hold.mode == HoldMode.SHARED)
            assertFalse(hold.tryUpgrade())
            beside.release()
            assertTrue(hold.tryUpgrade())
            assertTrue(beside.token < hold.token && hold.check() == hold.token)
            assertEquals(HoldMode.EXCLUSIVE, hold.mode)
            assertNull(other.rwLock(lock.name).reader.tryAcquire())
            hold.release()
            thrown<FencelockException.NotHeld> { hold.downgrade() }
            val permit = client.semaphore(fresh(), 1).acquire()
            thrown<FencelockException.InvalidArgument> { permit.downgrade() }
            permit.release()
        }
    }

    @ParameterizedTest
    @MethodSource("io.fencelock.kotlin.Stores#all")
    fun `never more are in than there are permits`(url: String) = withClient(url) { client ->
        assumeTrue(client.capabilities.permits, "the store has no semaphores")
        Client.connect(url).use { other ->
            val name = fresh()
            val inside = AtomicInteger()
            val most = AtomicInteger()
            val jobs =
                List(40) { number ->
                    launch {
                        val count = 1 + number % 2
                        (if (number % 3 == 0) client else other).semaphore(name, 3).withPermit(count) {
                            most.accumulateAndGet(inside.addAndGet(count), ::maxOf)
                            yield()
                            inside.addAndGet(-count)
                        }
                    }
                }
            jobs.forEach { it.join() }
            assertTrue(most.get() in 2..3, "$most were in")
            eventuallyEmpty(client, name)
        }
    }

    @ParameterizedTest
    @MethodSource("io.fencelock.kotlin.Stores#all")
    fun `permits are counted, and their number agreed`(url: String) = withClient(url) { client ->
        assumeTrue(client.capabilities.permits, "the store has no semaphores")
        val mailers = client.semaphore(fresh(), 3, maxHold = 60.seconds)
        assertEquals(3, mailers.permits)
        val two = mailers.acquire(2)
        assertEquals(1, mailers.availablePermits())
        assertNull(mailers.tryAcquire(2))
        val one = mailers.tryAcquire()
        assertNotNull(one)
        thrown<FencelockException.TimedOut> { mailers.acquire(timeout = 20.milliseconds) }
        val held = client.inspect(mailers.name)!!.holds
        assertEquals(listOf(1u, 2u), held.map { it.permits }.sorted())
        val other = thrown<FencelockException.Misconfigured> { client.semaphore(mailers.name, 5).acquire() }
        assertTrue("3" in other.message!! && "5" in other.message!!, other.message)
        thrown<FencelockException.Misconfigured> { client.lock(mailers.name).acquire() }
        for (count in listOf(-1, 0, 4)) thrown<FencelockException.InvalidArgument> { mailers.acquire(count) }
        for (count in listOf(-1, 0, 1_000_001)) {
            thrown<FencelockException.InvalidArgument> { client.semaphore("x", count) }
        }
        two.release()
        one!!.release()
        thrown<FencelockException.NotHeld> { one.release() }
        assertEquals(3, mailers.availablePermits())
        // Nobody has any: another may say how many there are.
        client.semaphore(mailers.name, 5).withPermit(5) {
            assertEquals(5u, client.inspect(mailers.name)!!.holds[0].permits)
        }
    }

    @ParameterizedTest
    @MethodSource("io.fencelock.kotlin.Stores#all")
    fun `a semaphore is resized and followed`(url: String) = withClient(url) { client ->
        assumeTrue(client.capabilities.permits, "the store has no semaphores")
        val mailers = client.semaphore(fresh(), 3)
        val following = client.semaphore(mailers.name, 5).adopting()
        assertFalse(mailers.resize(4))
        val two = mailers.acquire(3)
        val waiting = async { following.acquire() }
        eventuallyWaiting(client, 1)
        assertTrue(mailers.resize(4))
        val one = waiting.await()
        thrown<FencelockException.Misconfigured> { mailers.acquire() }
        thrown<FencelockException.InvalidArgument> { following.acquire(5) }
        assertNull(following.tryAcquire())
        assertEquals(0, following.availablePermits())
        two.release()
        one.release()
        following.withPermit(5) {}
        thrown<FencelockException.InvalidArgument> { mailers.resize(0) }
    }

    @ParameterizedTest
    @MethodSource("io.fencelock.kotlin.Stores#all")
    fun `one hold of several is broken`(url: String) = withClient(url) { client ->
        assumeTrue(client.capabilities.permits, "the store has no semaphores")
        val mailers = client.semaphore(fresh(), 3)
        val one = mailers.acquire()
        val two = mailers.acquire(2)
        val seen = client.inspect(mailers.name)!!.holds.single { it.permits == 2u }
        thrown<FencelockException.InvalidArgument> { client.breakHold(mailers.name, seen.token, "two") }
        assertEquals(1u, client.breakHold(mailers.name, seen.token, seen.id).ended)
        thrown<FencelockException.Lost> { two.release() }
        assertTrue(one.isValid)
        one.release()
    }

    @ParameterizedTest
    @MethodSource("io.fencelock.kotlin.Stores#all")
    fun `a small request does not pass a large one`(url: String) = withClient(url) { client ->
        assumeTrue(client.capabilities.permits, "the store has no semaphores")
        val mailers = client.semaphore(fresh(), 3)
        val order = mutableListOf<Int>()
        val two = mailers.acquire(2)
        val large = launch { mailers.withPermit(3) { order.add(3) } }
        eventuallyWaiting(client, 1)
        val small = launch { mailers.withPermit { order.add(1) } }
        eventuallyWaiting(client, 2)
        assertNull(mailers.tryAcquire())
        two.release()
        large.join()
        small.join()
        assertEquals(listOf(3, 1), order)
    }

    @ParameterizedTest
    @MethodSource("io.fencelock.kotlin.Stores#all")
    fun `a cancelled wait leaves nothing`(url: String) = withClient(url) { client ->
        assumeTrue(client.capabilities.permits, "the store has no semaphores")
        val lock = client.rwLock(fresh())
        val mailers = client.semaphore(fresh(), 2)
        lock.withWriteLock {
            mailers.withPermit(2) {
                val waiting = listOf(async { lock.reader.acquire() }, async { mailers.acquire() })
                eventuallyWaiting(client, 2)
                waiting.forEach { it.cancel() }
                waiting.forEach { it.join() }
                assertFalse(waiting.any { !it.isCancelled })
            }
        }
        eventuallyEmpty(client, lock.name)
        eventuallyEmpty(client, mailers.name)
    }
}
