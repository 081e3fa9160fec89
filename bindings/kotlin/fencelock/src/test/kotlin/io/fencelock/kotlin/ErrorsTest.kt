package io.fencelock.kotlin

import java.net.InetAddress
import java.net.ServerSocket
import kotlin.time.Duration
import kotlin.time.Duration.Companion.milliseconds
import kotlin.time.Duration.Companion.nanoseconds
import kotlin.time.Duration.Companion.seconds
import kotlinx.coroutines.async
import kotlinx.coroutines.cancelAndJoin
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.yield
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertFalse
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test

internal class ErrorsTest {
    private val all: List<FencelockException> =
        listOf(
            FencelockException.Contended("why"),
            FencelockException.TimedOut("why"),
            FencelockException.Cancelled("why"),
            FencelockException.Unavailable("why"),
            FencelockException.Lost("why"),
            FencelockException.NotHeld("why"),
            FencelockException.Misconfigured("why"),
            FencelockException.InvalidArgument("why"),
            FencelockException.Unsupported("why"),
            FencelockException.Closed("why"),
            FencelockException.WouldDeadlock("why"),
            FencelockException.Internal("why"),
        )

    @Test
    fun `each has its number, and says whether to try again`() {
        assertEquals((1..11).toList() + 100, all.map { it.code })
        assertEquals(ErrorKind.entries.toList(), all.map { it.kind })
        assertEquals(listOf(1, 2, 4), all.filter { it.isRetryable }.map { it.code })
        assertEquals(listOf("why"), all.map { it.message }.distinct())
        all.forEach {
            val name = it::class.simpleName!!.replace(Regex("(?<=[a-z])(?=[A-Z])"), "_").lowercase()
            assertEquals(name, errorFacts(it.kind).name)
        }
    }

    @Test
    fun `bad arguments are named`() = withClient(Stores.memory()) { client ->
        thrown<FencelockException.InvalidArgument> { client.lock("") }
        thrown<FencelockException.InvalidArgument> { client.lock("x", owner = Owner.of("")) }
        thrown<FencelockException.InvalidArgument> { client.lock("x", lease = 1.milliseconds).acquire() }
        for (limit in listOf(0, -1)) {
            thrown<FencelockException.InvalidArgument> { client.list(limit = limit) }
        }
        for (name in listOf("a\u0000b", "half \uDC00", "x".repeat(513))) {
            thrown<FencelockException.InvalidArgument> { client.lock(name) }
            thrown<FencelockException.InvalidArgument> { client.inspect(name) }
            thrown<FencelockException.InvalidArgument> { client.breakLock(name, 1u) }
        }
        thrown<FencelockException.InvalidArgument> { client.list("half \uDC00") }
        thrown<FencelockException.InvalidArgument> { client.attach("half \uDC00") }
        thrown<FencelockException.InvalidArgument> { Owner.of("half \uDC00") }
        thrown<FencelockException.InvalidArgument> { Client.connect("memory:half \uDC00") }
        thrown<FencelockException.InvalidArgument> { Client.connect(Stores.memory(), label = "half \uDC00") }
        client.lock("x").acquire(timeout = Duration.INFINITE).release()
        client.lock("x").withLock { hold ->
            thrown<FencelockException.InvalidArgument> { hold.extend(Duration.INFINITE) }
            thrown<FencelockException.InvalidArgument> { hold.extend(365.seconds * 86_400) }
        }
        thrown<FencelockException.InvalidArgument> { Client.connect(Stores.memory(), maxWaiters = -1) }
        val url = thrown<FencelockException.InvalidArgument> { Client.connect("redis") }
        assertTrue(url.message!!.isNotBlank())
    }

    @Test
    fun `a timeout of zero or below asks once`() = withClient(Stores.memory()) { client ->
        val lock = client.lock("x")
        lock.withLock {
            for (timeout in listOf(Duration.ZERO, (-1).seconds, -Duration.INFINITE)) {
                thrown<FencelockException.Contended> { lock.acquire(timeout) }
            }
            thrown<FencelockException.TimedOut> { lock.acquire(1.nanoseconds) }
        }
        lock.acquire(timeout = (-1).seconds).release()
        val hold = lock.acquire()
        assertFalse(client.drain((-1).seconds))
        thrown<FencelockException.Lost> { hold.release() }
    }

    @Test
    fun `the end of a client says whether all was released`() = runBlocking {
        val url = Stores.memory()
        val idle = Client.connect(url)
        idle.lock("x").withLock {}
        assertTrue(idle.shutDown())
        assertTrue(idle.shutDown())
        val holding = Client.connect(url)
        val hold = holding.lock("x").acquire()
        val lost = hold.lost
        assertFalse(holding.shutDown())
        assertEquals(LossReason.CLOSED, lost.await())
        val draining = Client.connect(url)
        draining.lock("x").acquire()
        assertFalse(draining.drain(20.milliseconds))
        assertTrue(draining.isClosed)
        val patient = Client.connect(url)
        val held = patient.lock("x").acquire(timeout = Duration.INFINITE)
        val drained = async { patient.drain(Duration.INFINITE) }
        yield()
        held.release()
        assertTrue(drained.await())
    }

    @Test
    fun `a timeout shorter than a round trip is in vain and leaves nothing`() = runBlocking {
        RedisServer.start().use { server ->
            Client.connect(server.url, requestTimeout = 300.seconds).use { client ->
                val lock = client.lock("x")
                server.stop()
                thrown<FencelockException.TimedOut> { lock.acquire(timeout = 1.milliseconds) }
                thrown<FencelockException.TimedOut> { lock.withLock(timeout = 20.milliseconds) { error("entered") } }
                server.resume()
                lock.withLock(timeout = BOUND) {}
                eventuallyEmpty(client, "x")
            }
        }
    }

    @Test
    fun `a store that is not there is unavailable`() = runBlocking {
        val port = ServerSocket(0, 1, InetAddress.getLoopbackAddress()).use { it.localPort }
        val error =
            thrown<FencelockException.Unavailable> {
                Client.connect("redis://127.0.0.1:$port", connectTimeout = 1.seconds)
            }
        assertTrue(error.isRetryable)
    }

    @Test
    fun `a connect can be cancelled`() = runBlocking {
        // It takes connections, and never answers.
        ServerSocket(0, 1, InetAddress.getLoopbackAddress()).use { silent ->
            val connecting = async { Client.connect("redis://127.0.0.1:${silent.localPort}", connectTimeout = BOUND) }
            yield()
            connecting.cancelAndJoin()
            assertTrue(connecting.isCancelled)
        }
    }

    @Test
    fun `options arrive`() = runBlocking {
        val url = Stores.memory()
        Client.connect(url, label = "tester", lease = 5.seconds, maxWaiters = 1).use { client ->
            val lock = client.lock("x")
            lock.withLock { hold ->
                assertTrue(hold.remaining <= 5.seconds)
                assertEquals("tester", client.inspect("x")!!.holds.single().label)
                val waiting = async { lock.acquire() }
                eventuallyWaiting(client, 1)
                thrown<FencelockException> { lock.acquire(timeout = BOUND) }
                waiting.cancelAndJoin()
            }
            assertFalse(lock.isLocked())
        }
    }
}
