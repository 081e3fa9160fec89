package io.fencelock.kotlin

import java.lang.ref.WeakReference
import java.util.concurrent.CompletableFuture
import java.util.concurrent.ConcurrentLinkedQueue
import java.util.concurrent.TimeUnit
import java.util.logging.Handler
import java.util.logging.LogRecord
import java.util.logging.Logger
import java.util.logging.SimpleFormatter
import kotlin.time.Duration.Companion.seconds
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.async
import kotlinx.coroutines.awaitCancellation
import kotlinx.coroutines.delay
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertFalse
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import org.junit.jupiter.params.ParameterizedTest
import org.junit.jupiter.params.provider.MethodSource

internal class LossTest {
    @ParameterizedTest
    @MethodSource("io.fencelock.kotlin.Stores#all")
    fun `a holder whose lock is broken is told`(url: String) = withClient(url) { client ->
        val lock = client.lock(fresh())
        val hold = lock.acquire()
        val told = async { hold.lost.await() }
        val seen = client.inspect(lock.name)!!.token
        assertEquals(Broken(0u, seen), client.breakLock(lock.name, seen - 1u))
        assertEquals(Broken(1u, null), client.breakLock(lock.name, seen))
        assertEquals(LossReason.BROKEN, told.await())
        assertFalse(hold.isValid)
        assertEquals(0.seconds, hold.remaining)
        assertEquals(5, thrown<FencelockException.Lost> { hold.check() }.code)
        thrown<FencelockException.Lost> { hold.release() }
        assertEquals(LossReason.BROKEN, hold.lost.await())
        hold.close()
        assertEquals(Abandoned.YES, lock.withLock(timeout = BOUND) { it.previousAbandoned })
    }

    @ParameterizedTest
    @MethodSource("io.fencelock.kotlin.Stores#all")
    fun `a block that ends after the loss says so`(url: String) = withClient(url) { client ->
        val lock = client.lock(fresh())
        thrown<FencelockException.Lost> {
            lock.withLock { hold ->
                client.breakLock(lock.name, hold.token.toULong())
                hold.lost.await()
            }
        }
        val failed =
            thrown<IllegalStateException> {
                lock.withLock { hold ->
                    client.breakLock(lock.name, hold.token.toULong())
                    hold.lost.await()
                    error("of the block")
                }
            }
        assertTrue(failed.suppressed.single() is FencelockException.Lost)
    }

    @ParameterizedTest
    @MethodSource("io.fencelock.kotlin.Stores#all")
    fun `a loss cancels the block on request`(url: String) = withClient(url) { client ->
        val lock = client.lock(fresh())
        launch {
            eventually("it is held") { lock.isLocked() }
            client.breakLock(lock.name, client.inspect(lock.name)!!.token)
        }
        val lost =
            thrown<FencelockException.Lost> { lock.withLock(cancelOnLoss = true) { awaitCancellation() } }
        assertTrue(lost.message!!.contains("BROKEN"), lost.message)
        assertEquals(7, lock.withLock(cancelOnLoss = true) { 7 })
        thrown<IllegalStateException> { lock.withLock(cancelOnLoss = true) { error("of the block") } }
    }

    @ParameterizedTest
    @MethodSource("io.fencelock.kotlin.Stores#all")
    fun `a holder learns that another waits`(url: String) = withClient(url) { client ->
        Client.connect(url).use { other ->
            val name = fresh()
            val hold = client.lock(name).acquire()
            val wish = hold.wanted
            val waiting = async { other.lock(name).acquire() }
            wish.await()
            assertTrue(hold.isWanted)
            hold.release()
            waiting.await().release()
        }
    }

    @Test
    fun `the death of a server is told`() = runBlocking(Dispatchers.Default) {
        RedisServer.start().use { server ->
            Client.connect(server.url, lease = 1.seconds, requestTimeout = 1.seconds).use { client ->
                val lock = client.lock("x")
                val hold = lock.acquire()
                val waiting = async { runCatching { lock.acquire(timeout = 2.seconds) } }
                eventuallyWaiting(client, 1)
                server.close()
                assertEquals(LossReason.NOT_RENEWED, hold.lost.await())
                assertFalse(hold.isValid)
                val failed = waiting.await().exceptionOrNull()
                assertTrue(failed is FencelockException.Unavailable || failed is FencelockException.TimedOut, "$failed")
                assertTrue((failed as FencelockException).isRetryable)
            }
        }
    }

    @Test
    fun `a close tells holders and waiters`() = runBlocking(Dispatchers.Default) {
        val client = Client.connect(Stores.memory())
        val lock = client.lock("x")
        val hold = lock.acquire()
        val waiting = async { runCatching { lock.acquire() } }
        eventuallyWaiting(client, 1)
        client.shutDown()
        assertEquals(LossReason.CLOSED, hold.lost.await())
        assertTrue(waiting.await().exceptionOrNull() is FencelockException.Closed)
        assertTrue(client.isClosed)
        thrown<FencelockException.Closed> { lock.acquire() }
        client.close()
    }

    @Test
    fun `a drain lets what is held finish`() = runBlocking(Dispatchers.Default) {
        val client = Client.connect(Stores.memory())
        val hold = client.lock("x").acquire()
        val drained = async { client.drain(BOUND) }
        eventually("new ones are turned away") {
            runCatching { client.lock("y").acquire().release() }.exceptionOrNull() is FencelockException.Closed
        }
        hold.release()
        assertTrue(drained.await())
    }

    @Test
    fun `a hold that is forgotten is released, and a warning says so`() = runBlocking(Dispatchers.Default) {
        val warnings = ConcurrentLinkedQueue<String>()
        val handler =
            object : Handler() {
                override fun publish(record: LogRecord) {
                    warnings.add(SimpleFormatter().formatMessage(record))
                }

                override fun flush() = Unit

                override fun close() = Unit
            }
        val logger = Logger.getLogger("io.fencelock")
        logger.addHandler(handler)
        try {
            Client.connect(Stores.memory()).use { client ->
                val lock = client.lock("lost sight of")
                lock.withLock { it.release() }
                lock.acquire().close()
                val forgotten = forget(lock)
                eventually("it is collected, and released") {
                    System.gc()
                    delay(10)
                    forgotten.get() == null && !lock.isLocked() && warnings.isNotEmpty()
                }
            }
        } finally {
            logger.removeHandler(handler)
        }
        assertTrue(warnings.single { "lost sight of" in it }.contains("was forgotten"))
    }

    /** Its loss is watched, too: that must not keep it. */
    private suspend fun forget(lock: Lock): WeakReference<Hold> {
        val hold = lock.acquire()
        hold.lost
        return WeakReference(hold)
    }

    @Test
    fun `what a host does when it is told delays no connection`() = withClient(RedisServer.shared.url) { client ->
        val lock = client.lock(fresh())
        val hold = lock.acquire()
        val entered = CompletableFuture<Unit>()
        val leave = CompletableFuture<Unit>()
        launch(Dispatchers.Unconfined) {
            hold.lost.await()
            entered.complete(Unit)
            // On the thread that calls back.
            leave.get(BOUND.inWholeSeconds, TimeUnit.SECONDS)
        }
        val breaking = launch { client.breakLock(lock.name, hold.token.toULong()) }
        entered.get(BOUND.inWholeSeconds, TimeUnit.SECONDS)
        val before = grants(client)
        val acquiring = async { lock.acquire() }
        eventually("the client has the lock") { grants(client) > before }
        leave.complete(Unit)
        acquiring.await().release()
        breaking.join()
    }
}
