package io.fencelock.kotlin

import java.util.concurrent.ThreadLocalRandom
import kotlin.coroutines.cancellation.CancellationException
import kotlin.time.Duration.Companion.milliseconds
import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.CoroutineStart
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.async
import kotlinx.coroutines.awaitCancellation
import kotlinx.coroutines.cancelAndJoin
import kotlinx.coroutines.launch
import kotlinx.coroutines.withTimeoutOrNull
import kotlinx.coroutines.yield
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertFalse
import org.junit.jupiter.api.Assertions.assertNull
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.params.ParameterizedTest
import org.junit.jupiter.params.provider.MethodSource

internal class CancellationTest {
    @ParameterizedTest
    @MethodSource("io.fencelock.kotlin.Stores#all")
    fun `a wait that is cancelled leaves the queue`(url: String) = withClient(url) { client ->
        val lock = client.lock(fresh())
        val hold = lock.acquire()
        val waiting = launch { lock.withLock { error("it must not be entered") } }
        eventuallyWaiting(client, 1)
        waiting.cancelAndJoin()
        assertEquals(0, waiting(client))
        assertNull(withTimeoutOrNull(20.milliseconds) { lock.acquire() })
        assertEquals(0, waiting(client))
        hold.release()
        lock.acquire(timeout = BOUND).release()
        eventuallyEmpty(client, lock.name)
    }

    @ParameterizedTest
    @MethodSource("io.fencelock.kotlin.Stores#all")
    fun `whenever it is cancelled, nothing is left`(url: String) = withClient(url) { client ->
        val lock = client.lock(fresh())
        val random = ThreadLocalRandom.current()
        repeat(150) { round ->
            val hold = if (round % 3 == 0) null else lock.acquire(timeout = BOUND)
            val dispatcher = if (round % 2 == 0) Dispatchers.Default else Dispatchers.Unconfined
            val waiting =
                List(3) {
                    launch(dispatcher, CoroutineStart.UNDISPATCHED) {
                        lock.withLock { if (round % 5 == 0) awaitCancellation() else yield() }
                    }
                }
            val releasing = launch { hold?.release() }
            repeat(random.nextInt(12)) { yield() }
            Thread.sleep(0, random.nextInt(400_000))
            waiting.forEach { it.cancel() }
            (waiting + releasing).forEach { it.join() }
        }
        lock.acquire(timeout = BOUND).release()
        eventuallyEmpty(client, lock.name)
        assertEquals(0, waiting(client))
    }

    @ParameterizedTest
    @MethodSource("io.fencelock.kotlin.Stores#all")
    fun `an acquire that was granted as it was cancelled is given back`(url: String) = withClient(url) { client ->
        val lock = client.lock(fresh())
        // The continuation is resumed and has not run yet when it is cancelled: nothing else ever runs here.
        val loop = Dispatchers.Default.limitedParallelism(1)
        repeat(50) {
            val hold = lock.acquire(timeout = BOUND)
            val before = grants(client)
            val waiting = async(loop) { lock.acquire() }
            eventuallyWaiting(client, 1)
            val started = CompletableDeferred<Unit>()
            val busy =
                launch(loop) {
                    started.complete(Unit)
                    // Without suspending, and so without letting the other go on.
                    while (grants(client) == before) Thread.sleep(1)
                    waiting.cancel()
                }
            started.await()
            hold.release()
            busy.join()
            waiting.join()
            assertTrue(waiting.isCancelled)
        }
        lock.acquire(timeout = BOUND).release()
        eventuallyEmpty(client, lock.name)
    }

    @ParameterizedTest
    @MethodSource("io.fencelock.kotlin.Stores#all")
    fun `a body that is cancelled releases`(url: String) = withClient(url) { client ->
        val lock = client.lock(fresh())
        val holding = launch { lock.withLock { awaitCancellation() } }
        eventually("it is held") { lock.isLocked() }
        holding.cancelAndJoin()
        assertFalse(lock.isLocked())
    }

    @ParameterizedTest
    @MethodSource("io.fencelock.kotlin.Stores#all")
    fun `what watches a hold ends with its release`(url: String) = withClient(url) { client ->
        client.lock(fresh()).withLock { hold ->
            val told = launch { hold.lost.await() }
            yield()
            hold.release()
            told.join()
            assertTrue(told.isCancelled)
            thrown<CancellationException> { hold.wanted.await() }
        }
    }
}
